/**
 * Reads the rows of a DLQ file as records, and writes DLQ files with the indexes that records have in their segment.
 *
 * Law: a record has the same bytes, envelope and index as in its segment.
 */
import { Buffer } from 'node:buffer'
import { createReadStream, createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { z } from 'zod'
import type { StoredRecord } from '#records/stored-records.ts'

const LINE_FEED = 0x0a

const DlqRow = z.object({
  record: z.string().nullish(),
  record_base64: z.string().nullish(),
  record_index: z.int().min(0),
  ingested_at: z.string(),
  protocol: z.string(),
  topic: z.string().nullish(),
  client_id: z.string().nullish(),
  attributes: z.looseObject({}).nullish(),
})

export type DlqRecord = StoredRecord & { readonly recordIndex: number }

export async function* readDlqRows(path: string, signal: AbortSignal): AsyncGenerator<DlqRecord> {
  for await (const line of linesOf(path, signal)) {
    const row = DlqRow.parse(JSON.parse(line))
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

/** Copies a DLQ file and replaces each `record_index` by `indexes[record_index]`. */
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

/** Splits only at line feeds, because text may contain U+2028. */
async function* linesOf(path: string, signal: AbortSignal): AsyncGenerator<string> {
  const unpacked = createGunzip()
  const unpacking = pipeline(createReadStream(path), unpacked, { signal })
  // The loop below throws the same error.
  unpacking.catch(() => undefined)
  let partial: Buffer[] = []
  for await (const chunk of unpacked as AsyncIterable<Buffer>) {
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      yield Buffer.concat([...partial, chunk.subarray(start, end)]).toString('utf8')
      partial = []
      start = end + 1
    }
    if (start < chunk.length) partial.push(chunk.subarray(start))
  }
  if (partial.length > 0) yield Buffer.concat(partial).toString('utf8')
}

function toMicros(iso: string): number {
  const [, micros = '0'] = /\.\d{3}(\d{3})Z$/.exec(iso) ?? []
  return Date.parse(iso.replace(/(\.\d{3})\d*Z$/, '$1Z')) * 1000 + Number(micros)
}
