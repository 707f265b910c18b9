"""The bucket that kills many hosts: its channel, its orders, and what they do here."""
