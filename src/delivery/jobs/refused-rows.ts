/**
 * The rows of a DLQ file, as records again, and a DLQ file of them as a DLQ file of their segment.
 *
 * Law: a record has the bytes, the envelope and the index that it had in its segment.
 */
import { Buffer } from 'node:buffer'
import { createReadStream, createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { z } from 'zod'
import type { StoredRecord } from '#records/stored-records.ts'

const LINE_FEED = 0x0a

const RefusedRow = z.object({
  record: z.string().nullish(),
  record_base64: z.string().nullish(),
  record_index: z.int().min(0),
  ingested_at: z.string(),
  protocol: z.string(),
  topic: z.string().nullish(),
  client_id: z.string().nullish(),
  attributes: z.looseObject({}).nullish(),
})

export type RefusedRecord = StoredRecord & { readonly recordIndex: number }

export async function* readRefusedRows(path: string, signal: AbortSignal): AsyncGenerator<RefusedRecord> {
  for await (const line of linesOf(path, signal)) {
    const row = RefusedRow.parse(JSON.parse(line))
    const { record, record_base64, record_index, ingested_at, protocol, topic, client_id, attributes } = row
    yield {
      protocol,
      topic: topic ?? '',
      clientId: client_id ?? '',
      attributes: attributes ? JSON.stringify(attributes) : '',
      receivedAtMicros: toMicros(ingested_at),
      payload: typeof record === 'string' ? Buffer.from(record) : Buffer.from(record_base64 ?? '', 'base64'),
      recordIndex: record_index,
    }
  }
}

/** Copies a DLQ file, with each `record_index` replaced by what stands there in `indexes`. */
export async function withOriginalIndexes(
  from: string,
  to: string,
  indexes: readonly number[],
  signal: AbortSignal,
): Promise<void> {
  async function* rows(): AsyncGenerator<string> {
    for await (const line of linesOf(from, signal)) {
      const row: { readonly record_index: number } = JSON.parse(line)
      yield `${JSON.stringify({ ...row, record_index: indexes[row.record_index] })}\n`
    }
  }
  await pipeline(Readable.from(rows()), createGzip(), createWriteStream(to, { flags: 'wx' }), { signal })
}

/** Lines end with a line feed and with nothing else: there may be a U+2028 in a text. */
async function* linesOf(path: string, signal: AbortSignal): AsyncGenerator<string> {
  const unpacked = createGunzip()
  const unpacking = pipeline(createReadStream(path), unpacked, { signal })
  // Its error comes out of the loop as well.
  unpacking.catch(() => undefined)
  let begun: Buffer[] = []
  for await (const chunk of unpacked as AsyncIterable<Buffer>) {
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      yield Buffer.concat([...begun, chunk.subarray(start, end)]).toString('utf8')
      begun = []
      start = end + 1
    }
    if (start < chunk.length) begun.push(chunk.subarray(start))
  }
  if (begun.length > 0) yield Buffer.concat(begun).toString('utf8')
}

function toMicros(iso: string): number {
  const [, micros = '0'] = /\.\d{3}(\d{3})Z$/.exec(iso) ?? []
  return Date.parse(iso.replace(/(\.\d{3})\d*Z$/, '$1Z')) * 1000 + Number(micros)
}
