/** Pages for people who open the address of a node: what this is, and where to send. */
import type { IncomingMessage } from 'node:http'
import { findErrorPage } from '#pages/errors.ts'
import { escapeHtml, htmlPage, jsonPage, prefersJson, type WebPage } from '#pages/html.ts'

/** Returns the page at a path, or undefined if there is none. */
export function findPage(path: string, request: IncomingMessage, controlUrl: string): WebPage | undefined {
  const { accept } = request.headers
  if (path !== '/') return findErrorPage(path, accept)
  return prefersJson(accept) ? jsonPage(overview(controlUrl)) : htmlPage('Inlet ingest', welcome(addressOf(request), controlUrl))
}

function overview(controlUrl: string) {
  return {
    service: 'inlet ingest',
    send: { method: 'POST', path: '/v1/ingest', content_types: ['application/x-ndjson', 'application/json'] },
    mqtt: '/mqtt',
    errors: '/errors',
    management_api: `${controlUrl}/v1`,
  }
}

function welcome(address: string, controlUrl: string): string {
  const command = `curl -X POST '${address}/v1/ingest' \\
  -H 'X-API-Key: ing_live_…' -H 'Content-Type: application/x-ndjson' \\
  --data-binary '{"event":"signup","user":{"id":"u-1"}}'`
  const socket = `${address.replace(/^http/, 'ws')}/mqtt`
  return `<h1>Inlet ingest</h1>
<p class="lead">This server receives events over HTTP and MQTT, and stores them as typed Parquet in your bucket.</p>
<h2>Send over HTTP</h2>
<p>One JSON record per line, with an API key that has the scope <code>ingest</code>:</p>
<pre><code>${escapeHtml(command)}</code></pre>
<p class="soft">If your account has several endpoints, name one: <code>/v1/ingest?endpoint=&lt;id&gt;</code>.</p>
<h2>Send over MQTT</h2>
<p>Connect to <code>${escapeHtml(socket)}</code> with any user name, and the API key as the password. The endpoint needs an <code>mqtt_config</code>.</p>
<footer>Endpoints, views and keys: <a href="${escapeHtml(controlUrl)}">management API</a>. <a href="errors">What errors mean</a></footer>`
}

/** The address as the client knows it. Behind a proxy that terminates TLS, this server itself has none. */
function addressOf({ headers, socket }: IncomingMessage): string {
  const isSecure = 'encrypted' in socket || headers['x-forwarded-proto'] === 'https'
  return `${isSecure ? 'https' : 'http'}://${headers.host ?? 'localhost'}`
}
