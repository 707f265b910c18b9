"""What accounts other than root may do with the host's instance: roles, the groups that give them, and what each role allows."""
