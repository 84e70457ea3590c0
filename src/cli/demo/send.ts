import { z } from 'zod'

const Receipt = z.object({
  accepted_records: z.number(),
  accepted_bytes: z.number(),
  node_id: z.string(),
  segment_seq: z.number(),
})

export type SendOptions = {
  readonly url: string
  readonly apiKey: string
  /** Lines as byte strings (latin1): what a file holds is sent byte for byte. */
  readonly batches: Iterable<readonly string[]>
  readonly parallel: number
  readonly onSent: (records: number, bytes: number) => void
}

export type Sent = {
  readonly records: number
  readonly bytes: number
  /** `<node>/<seq>` of every segment that took something: what the commits list must come to show. */
  readonly segments: ReadonlySet<string>
}

/** Posts batches of NDJSON, some at a time, and waits when the server asks for it. */
export async function send({ url, apiKey, batches, parallel, onSent }: SendOptions): Promise<Sent> {
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
      onSent(records, bytes)
    }
  }
  await Promise.all(Array.from({ length: parallel }, worker))
  return { records, bytes, segments }
}

const attemptsMax = 60

async function post(url: string, apiKey: string, body: Uint8Array<ArrayBuffer>): Promise<unknown> {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'x-api-key': apiKey, 'content-type': 'application/x-ndjson' },
      body,
      signal: AbortSignal.timeout(30_000),
    })
    if (response.ok) return response.json()
    const answer = await response.text()
    if (response.status !== 503 || attempt === attemptsMax) throw new Error(`the server answered ${response.status}: ${answer}`)
    await new Promise((resolve) => setTimeout(resolve, Number(response.headers.get('retry-after') ?? 1) * 1000))
  }
}
