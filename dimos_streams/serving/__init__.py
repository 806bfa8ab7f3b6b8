"""HTTP as bridges, fleet hubs and viewed recordings serve it alike: the server, strict routes, problems, events."""
