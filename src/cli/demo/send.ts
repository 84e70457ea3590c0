import { Delivery } from '#client/delivery.ts'
import { MiB } from '#lib/bytes.ts'
import { readBatches } from '../send/batches.ts'
import { Sending } from '../send/sending.ts'
import { patienceMs } from './patience.ts'

export type SendOptions = {
  readonly url: string
  readonly apiKey: string
  readonly endpoint: string
  /** Lines as byte strings (latin1), sent byte for byte. */
  readonly lines: readonly string[]
  readonly onStored: (records: number, bytes: number) => void
}

/** Sends lines in batches, several in parallel. Returns `<node>/<seq>` of every segment that received some. */
export async function sendOverHttp({ url, apiKey, endpoint, lines, onStored }: SendOptions): Promise<ReadonlySet<string>> {
  const delivery = new Delivery({ url, apiKey, endpoint, compression: 'none', requestTimeoutMs: patienceMs, fetch })
  const progress = { advance: (bytes: number, records: number) => onStored(records, bytes) }
  const sending = new Sending(delivery, progress, { parallel: 4, timeoutMs: patienceMs, salt: '' })
  await sending.run(readBatches(bytesOf(lines), { bytesMax: MiB / 8 }))
  return new Set(sending.summary.segments.map(({ node_id, segment_seq }) => `${node_id}/${segment_seq}`))
}

async function* bytesOf(lines: readonly string[]): AsyncIterable<Uint8Array> {
  for (const line of lines) yield Buffer.from(`${line}\n`, 'latin1')
}
