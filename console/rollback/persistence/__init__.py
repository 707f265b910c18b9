"""What could bring an agent back, or have a person run it: places as data, compared with a signed baseline. Nothing is executed."""
