/* Browsers refuse workers to a page that is opened from disk. There, the search runs in a hidden frame instead of a worker. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      inside.document.open();
      inside.document.write("<!DOCTYPE html><title>search</title>");
      inside.document.close();
      const load = (source) => new Promise((loaded, failed) => {
        const script = inside.document.createElement("script");
        script.src = source;
        script.onload = loaded;
        script.onerror = failed;
        inside.document.head.appendChild(script);
      });
      inside.importScripts = (...sources) => sources.reduce((done, source) => done.then(() => load(source)), Promise.resolve());
      inside.postMessage = (data) => setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
      this.inside = inside;
      this.ready = load(new URL(url, location.href).href);
    }
    postMessage(data) {
      this.ready = this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
  window.Worker = window.IFrameWorker;
}
