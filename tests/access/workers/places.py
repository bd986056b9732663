"""Where the stores of these tests are."""

import pg


def by_socket(server: pg.Server) -> str:
    """Return the URL of a new database by way of the server's socket, which takes no time to log in."""
    name = pg.fresh_database(server).rpartition("/")[2]
    return f"postgresql://{server.user}@/{name}?host={server.folder}&port={server.port}"
