import { z } from 'zod'
import { patienceMs } from './patience.ts'

const Receipt = z.object({
  accepted_records: z.number(),
  accepted_bytes: z.number(),
  node_id: z.string(),
  segment_seq: z.number(),
})

export type SendOptions = {
  readonly url: string
  readonly apiKey: string
  /** Lines as byte strings (latin1), sent byte for byte. */
  readonly batches: Iterable<readonly string[]>
  readonly parallel: number
  readonly onAcknowledged: (records: number, bytes: number) => void
}

/**
 * Posts batches of NDJSON, several in parallel, and waits when the server asks for it. Returns `<node>/<seq>` of every segment that
 * received a batch.
 */
export async function sendOverHttp({
  url,
  apiKey,
  batches,
  parallel,
  onAcknowledged,
}: SendOptions): Promise<ReadonlySet<string>> {
  const segments = new Set<string>()
  let records = 0
  let bytes = 0
  const source = batches[Symbol.iterator]()
  const worker = async () => {
    for (let next = source.next(); next.done !== true; next = source.next()) {
      const receipt = Receipt.parse(await post(url, apiKey, Buffer.from(`${next.value.join('\n')}\n`, 'latin1')))
      segments.add(`${receipt.node_id}/${receipt.segment_seq}`)
      records += receipt.accepted_records
      bytes += receipt.accepted_bytes
      onAcknowledged(records, bytes)
    }
  }
  await Promise.all(Array.from({ length: parallel }, worker))
  return segments
}

async function post(url: string, apiKey: string, body: Uint8Array<ArrayBuffer>): Promise<unknown> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'x-api-key': apiKey, 'content-type': 'application/x-ndjson' },
      body,
      signal: AbortSignal.timeout(patienceMs),
    })
    if (response.ok) return response.json()
    const text = await response.text()
    if (response.status !== 503 || performance.now() > deadline)
      throw new Error(`POST ${url} failed with ${response.status}: ${text}`)
    await new Promise((resolve) => setTimeout(resolve, Number(response.headers.get('retry-after') ?? 1) * 1000))
  }
}
