"""`unicr explore`: a page on this machine with sliders for noise, norm, dimension and p_A."""

from __future__ import annotations


def explore(*, port: int = 0, browser: bool = True) -> None:
    """Open the explorer: densities, radii and curves while sliders move. Ctrl-C ends it.

    Parameters
    ----------
    port
        Port on 127.0.0.1; 0 takes a free one.
    browser
        Open the page in the browser; --no-browser only prints the address.
    """
    import contextlib
    import webbrowser

    from unicr.explore import Explorer

    with Explorer(port) as server, contextlib.suppress(KeyboardInterrupt):
        print(f"unicr explore: {server.url}  (Ctrl-C to stop)", flush=True)
        if browser:
            webbrowser.open(server.url)
        server.serve_forever()
