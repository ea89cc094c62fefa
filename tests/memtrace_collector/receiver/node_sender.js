// node node_sender.js MODULES KIND URL SPANS [gzip]: exports spans with the OpenTelemetry SDK for Node,
// prints their ids. KIND: proto, http or grpc.
const { createRequire } = require("node:module");
const [modules, kind, url, spans, compression] = process.argv.slice(2);
const load = createRequire(modules + "/");

const { NodeTracerProvider, BatchSpanProcessor } = load("@opentelemetry/sdk-trace-node");
const { OTLPTraceExporter } = load("@opentelemetry/exporter-trace-otlp-" + kind);

const exporter = new OTLPTraceExporter({ url, compression: compression || "none" });
const provider = new NodeTracerProvider({
  spanProcessors: [new BatchSpanProcessor(exporter, { maxQueueSize: 10000 })],
});
const tracer = provider.getTracer("test");
const ids = [];
for (let number = 0; number < Number(spans); number++) {
  const attributes = { number, text: "ä".repeat(50), list: ["a", "b"], part: 0.5, yes: true };
  const span = tracer.startSpan("s", { attributes });
  span.addEvent("e", { n: 1 });
  ids.push(span.spanContext().spanId);
  span.end();
}
provider
  .forceFlush()
  .then(() => provider.shutdown())
  .then(() => console.log(JSON.stringify(ids)));
