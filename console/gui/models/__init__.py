"""What the console knows: plain rows and states fed by the wire, adapted by the views. Nothing here enforces anything."""
