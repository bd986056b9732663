from store_fixtures import data_folder, postgres_server, postgres_url

__all__ = ["data_folder", "postgres_server", "postgres_url"]
