/**
 * A gateway for `copies.ts` that speaks as much of S3 as copies need, and answers after a delay: `node copy-gateway.ts`.
 * It keeps objects in memory, large ones without their content, so that the node is what is measured.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { KiB } from '#lib/bytes.ts'

/** `delayMs` sets the delay, and starts to count anew. Without it, it asks what was counted. */
export type GatewayQuestion = { readonly delayMs?: number }
export type GatewayAnswer = { readonly requests: Readonly<Record<string, number>>; readonly bytes: number }

const keptBytesMax = 64 * KiB
const objects = new Map<string, Buffer>()
let requests: Record<string, number> = {}
let bytes = 0
let delayMs = 0

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = '', headers } = request
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://gateway')
  const body = await buffer(request)
  const isList = searchParams.has('list-type')
  const name = isList ? 'LIST' : method
  requests[name] = (requests[name] ?? 0) + 1
  bytes += body.length
  if (delayMs > 0) await setTimeout(delayMs)
  const known = objects.get(pathname)
  if (isList)
    response.writeHead(200, { 'content-type': 'application/xml' }).end(listOf(pathname, searchParams.get('prefix') ?? ''))
  else if (method === 'PUT') {
    if (headers['if-none-match'] === '*' && known !== undefined) response.writeHead(412).end()
    else {
      objects.set(pathname, body.length > keptBytesMax ? Buffer.alloc(0) : body)
      response.writeHead(200, { etag: '"e"' }).end()
    }
  } else if (method === 'DELETE') {
    objects.delete(pathname)
    response.writeHead(204).end()
  } else if (known === undefined) response.writeHead(404).end()
  else response.writeHead(200, { etag: '"e"', 'content-length': known.length }).end(method === 'HEAD' ? undefined : known)
}

function listOf(bucketPath: string, prefix: string): string {
  const bucket = bucketPath.endsWith('/') ? bucketPath : `${bucketPath}/`
  const keys = [...objects.keys()]
    .filter((path) => path.startsWith(bucket))
    .map((path) => decodeURIComponent(path.slice(bucket.length)))
  const contents = keys
    .filter((key) => key.startsWith(prefix))
    .map((key) => `<Contents><Key>${key}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>`)
  return `<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>${contents.join('')}</ListBucketResult>`
}

const server = createServer((request, response) => {
  respond(request, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined))
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send?.({ ready: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }))
process.on('message', (question: GatewayQuestion) => {
  if (question.delayMs !== undefined) {
    delayMs = question.delayMs
    requests = {}
    bytes = 0
  }
  process.send?.({ requests, bytes } satisfies GatewayAnswer)
})
process.on('disconnect', () => process.exit())
