"""What agents did, by their own files and by the output of programs that were started."""
