// A page that is opened from disk may start no worker, in which the search runs.  There, and only there, this stands in for one: the worker's script runs in a
// hidden frame, whose messages go to and fro.  Named after what the theme's `offline` plugin would otherwise fetch from elsewhere at each visit.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentDocument;
      inside.open();
      inside.write("<!doctype html><title>worker</title><body></body>");
      inside.close();
      const load = (one) =>
        new Promise((loaded, failed) => {
          const script = inside.createElement("script");
          script.src = new URL(one, location.href).href;
          script.onload = loaded;
          script.onerror = () => failed(new Error(`${one} cannot be read`));
          inside.body.append(script);
        });
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inner.importScripts = (...all) => all.reduce((before, one) => before.then(() => load(one)), Promise.resolve());
      this.ready = load(address);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
