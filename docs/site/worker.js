// Browsers start no workers for pages that are opened as files. There the site's search runs in a hidden frame instead,
// which speaks as a worker does: what it posts comes here, what is posted to it arrives there.
if (location.protocol === 'file:')
  window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      const frame = document.createElement('iframe');
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow, waiting = [];
      this.post = message => waiting.push(message);
      inside.postMessage = message => inside.setTimeout(() => {
        const told = new MessageEvent('message', {data: message});
        this.dispatchEvent(told);
        if (this.onmessage) this.onmessage(told);
      });
      // A worker's way to load more code, one after the other.
      inside.importScripts = (...urls) => urls.reduce(
        (before, url) => before.then(() => new Promise((done, failed) => {
          const part = inside.document.createElement('script');
          part.onload = done;
          part.onerror = failed;
          part.src = url;
          inside.document.body.append(part);
        })), Promise.resolve());
      inside.importScripts(script).then(() => {
        this.post = message => inside.dispatchEvent(new inside.MessageEvent('message', {data: message}));
        waiting.forEach(this.post);
      });
      this.terminate = () => frame.remove();
    }
    postMessage(message) { this.post(message); }
  };
