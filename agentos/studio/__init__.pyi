from agentos.studio.studio_server import serve_studio as serve_studio
from agentos.studio.web_app import studio_app as studio_app
