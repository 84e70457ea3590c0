/**
 * Reads records of raw Parquet, with their places, in batches that grow.
 *
 * Law: no file is trusted. The caller runs this in a process that may be killed; a batch is bounded, and reading ends when the caller says so.
 */
import { Buffer } from 'node:buffer'
import { dirname } from 'node:path'
import { Database, StatementTimeout, type Value } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { MiB } from '#lib/bytes.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { RecordSource } from '#records/sources.ts'

/** A copy of raw Parquet. */
export type StoredFile = {
  readonly path: string
  readonly commit_id: string
  readonly endpoint_id: string
  /** The rows of the commit, if the file has others too. */
  readonly part?: { readonly first_row: number; readonly rows: number }
}

export type RecordPlace = Pick<StoredFile, 'commit_id' | 'endpoint_id'> & {
  readonly segment_seq: number
  readonly record_index: number
}

export type PlacedRecord = RecordSource & {
  readonly place: RecordPlace
  readonly receivedAtMicros: number
  readonly payload: Buffer
  /** Whether the payload is valid UTF-8. */
  readonly isText: boolean
}

/** A file is not raw Parquet, or is damaged. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile'
}

/** The first batch is small: a definition may be so slow that it gets no further. */
const batchLimits = { firstRecords: 256, records: 4_096, bytes: 4 * MiB } as const
const memoryBytes = 96 * MiB

export type BatchReader = {
  /** Called with one batch after the other until it returns false. */
  readonly take: (batch: readonly PlacedRecord[]) => Promise<boolean>
  /** Called once for a file that is damaged. Records before the damage may be in a batch. */
  readonly onUnreadable: (error: UnreadableFile) => void
}

/** Throws StatementTimeout, and what `take` throws. */
export async function readStoredBatches(
  files: readonly StoredFile[],
  timeoutMs: () => number,
  { take, onUnreadable }: BatchReader,
): Promise<void> {
  const [first] = files
  if (first === undefined) return
  const batches = new Batches(take)
  const unreadable = new Set<string>()
  const database = await Database.open({ directories: [dirname(first.path)], memoryBytes })
  try {
    const connection = await database.connect()
    for (const file of files) {
      if (!batches.wantsMore) return
      // Several segments may be in one file.
      if (unreadable.has(file.path)) continue
      const reading = connection.read(
        rowsSql(file),
        {
          columns: () => undefined,
          take: (row) => {
            if (batches.wantsMore) batches.add(toRecord(row, file))
            return batches.wantsMore
          },
          drain: () => batches.passOn(),
        },
        { timeoutMs: timeoutMs() },
      )
      await reading.catch((error: unknown) => {
        if (error instanceof StatementTimeout) throw error
        unreadable.add(file.path)
        onUnreadable(new UnreadableFile(errorMessage(error)))
      })
      batches.throwFailure()
    }
    await batches.passOn(true)
    batches.throwFailure()
  } finally {
    database.close()
  }
}

/** Records that wait for their batch. */
class Batches {
  readonly #take: (batch: readonly PlacedRecord[]) => Promise<boolean>
  #waiting: PlacedRecord[] = []
  #bytes = 0
  #records: number = batchLimits.firstRecords
  #failure: { readonly error: unknown } | undefined
  wantsMore = true

  constructor(take: (batch: readonly PlacedRecord[]) => Promise<boolean>) {
    this.#take = take
  }

  add(record: PlacedRecord): void {
    this.#waiting.push(record)
    this.#bytes += record.payload.length
  }

  /** Passes on what is enough for a batch, or all. Keeps an error: one that is thrown while rows are read looks like one of the file. */
  async passOn(isLast = false): Promise<void> {
    try {
      while (this.wantsMore && this.#waiting.length > 0 && (isLast || this.#isEnough())) {
        this.wantsMore = await this.#take(this.#cut())
        this.#records = Math.min(2 * this.#records, batchLimits.records)
      }
    } catch (error) {
      this.#failure = { error }
      this.wantsMore = false
    }
  }

  throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }

  #isEnough(): boolean {
    return this.#waiting.length >= this.#records || this.#bytes >= batchLimits.bytes
  }

  #cut(): readonly PlacedRecord[] {
    let [count, bytes] = [0, 0]
    for (const { payload } of this.#waiting) {
      if (count > 0 && (count === this.#records || bytes + payload.length > batchLimits.bytes)) break
      count += 1
      bytes += payload.length
    }
    const batch = this.#waiting.slice(0, count)
    this.#waiting = this.#waiting.slice(count)
    this.#bytes -= bytes
    return batch
  }
}

function rowsSql({ path, part }: StoredFile): string {
  const rows = part === undefined ? '' : ` WHERE file_row_number BETWEEN ${part.first_row} AND ${part.first_row + part.rows - 1}`
  return `SELECT segment_seq, record_index, epoch_us(ingested_at), protocol, topic, client_id, attributes, payload, to_base64(payload_bytes)
    FROM read_parquet(${quoteLiteral(path)}, hive_partitioning = false, file_row_number = true)${rows}`
}

function toRecord(row: readonly Value[], { commit_id, endpoint_id }: StoredFile): PlacedRecord {
  const [segment_seq, record_index, receivedAt, protocol, topic, clientId, attributes, payload = null, base64] = row
  return {
    place: { commit_id, endpoint_id, segment_seq: Number(segment_seq), record_index: Number(record_index) },
    receivedAtMicros: Number(receivedAt),
    protocol: String(protocol ?? ''),
    topic: String(topic ?? ''),
    clientId: String(clientId ?? ''),
    attributes: String(attributes ?? ''),
    payload: payload === null ? Buffer.from(String(base64 ?? ''), 'base64') : Buffer.from(String(payload)),
    isText: payload !== null,
  }
}
