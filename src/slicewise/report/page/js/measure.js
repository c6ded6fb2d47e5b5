// How long it takes from moving a slider to the redrawn chart: kept as entries "slicewise:drag" of the browser's own
// performance timeline, for whoever wants to see them (the browser tests read them).

const NAME = "slicewise:drag";
const MOST_KEPT = 500;

/** The answer to a question is drawn: once the browser has painted, note the time since its input event. */
export async function measure(question) {
  if (!question.dragging || question.eventTime === undefined) return;
  await painted();
  performance.measure(NAME, { start: question.eventTime, end: performance.now() });
  if (performance.getEntriesByName(NAME).length > MOST_KEPT) performance.clearMeasures(NAME);
}

/** Resolves in a task after the next frame: what was drawn before is on the screen. */
export function painted() {
  return new Promise((resolve) => {
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = resolve;
      channel.port2.postMessage(null);
    });
  });
}

/** How much of the page moved without being asked to, as the browser counts it. */
export function watch() {
  window.slicewiseShift = 0;
  if (!PerformanceObserver.supportedEntryTypes?.includes("layout-shift")) return;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.slicewiseShift += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
}
