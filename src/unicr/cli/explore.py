"""`unicr explore`: a page on this machine with sliders for noise, norm, dimension and p_A."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from unicr.cli._parameters import command

Browser = Annotated[bool, Parameter(negative="--no-browser")]


@command
def explore(*, port: int = 0, browser: Browser = True) -> None:
    """Open a local page with sliders for noise, norm and p_A.

    The page is served on this machine only; Ctrl-C ends it. Example: unicr explore --no-browser

    Parameters
    ----------
    port
        Port on 127.0.0.1; 0 chooses a free one.
    browser
        Open the page in the browser; --no-browser only prints the address.
    """
    import contextlib
    import webbrowser

    from unicr.lab.explore import Explorer

    with Explorer(port) as server, contextlib.suppress(KeyboardInterrupt):
        print(f"unicr explore: {server.url}  (Ctrl-C to stop)", flush=True)
        if browser:
            webbrowser.open(server.url)
        server.serve_forever()
