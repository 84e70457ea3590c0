/** Reads everything that was delivered for an endpoint: each marker, and the records in the files that it lists. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { parseArtifactKind } from '#model/artifact.ts'
import type { SegmentCommit } from '#model/commit.ts'
import { recordsIn } from './ledger.ts'

/** A record by request and index: `17/3`. */
export type RecordName = string

export type ViewRows = {
  readonly name: string
  readonly accepted: readonly RecordName[]
  readonly rejected: readonly RecordName[]
}

export type Delivered = {
  readonly marker: SegmentCommit
  /** From raw Parquet, or from a view and its DLQ if there is none. */
  readonly records: readonly RecordName[]
  readonly views: readonly ViewRows[]
  /** Files that are missing or differ from the marker. */
  readonly problems: readonly string[]
}

export class BucketContents implements AsyncDisposable {
  readonly #buckets: string
  readonly #instance: DuckDBInstance
  readonly #connection: DuckDBConnection

  private constructor(buckets: string, instance: DuckDBInstance, connection: DuckDBConnection) {
    this.#buckets = buckets
    this.#instance = instance
    this.#connection = connection
  }

  static async open(buckets: string): Promise<BucketContents> {
    const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
    return new BucketContents(buckets, instance, await instance.connect())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection.closeSync()
    this.#instance.closeSync()
  }

  /** Returns what the markers of the endpoint list, over all buckets. */
  async of(endpointId: string): Promise<readonly Delivered[]> {
    const delivered: Delivered[] = []
    for (const path of markerPaths(this.#buckets, endpointId)) {
      delivered.push(await this.#read(JSON.parse(readFileSync(path, 'utf8'))))
    }
    return delivered
  }

  async #read(marker: SegmentCommit): Promise<Delivered> {
    const problems: string[] = []
    const views = new Map<string, { accepted: readonly RecordName[]; rejected: readonly RecordName[] }>()
    let raw: readonly RecordName[] | undefined
    for (const [text, { key, bytes, rows }] of Object.entries(marker.artifacts)) {
      const path = join(this.#buckets, marker.destination.bucket, key)
      const found = statSync(path, { throwIfNoEntry: false })
      if (found?.size !== bytes) {
        problems.push(`${key}: ${found === undefined ? 'is missing' : `has ${found.size} bytes instead of ${bytes}`}`)
        continue
      }
      const kind = parseArtifactKind(text)
      let read: readonly RecordName[] | undefined
      const reading = async (rows: () => Promise<readonly RecordName[]>): Promise<readonly RecordName[]> => {
        try {
          return await rows()
        } catch (error) {
          problems.push(`${key}: cannot be read: ${String(error)}`)
          return []
        }
      }
      if (kind?.type === 'parquet') raw = read = await reading(() => this.#raw(path))
      if (kind?.type === 'view' || kind?.type === 'dlq') {
        const name = `${kind.name} v${kind.version}`
        const view = views.get(name) ?? { accepted: [], rejected: [] }
        read = await reading(async () => (kind.type === 'view' ? await this.#typed(path) : deadLetters(path)))
        views.set(name, { ...view, [kind.type === 'view' ? 'accepted' : 'rejected']: read })
      }
      if (read !== undefined && read.length !== rows) problems.push(`${key}: ${read.length} rows instead of ${rows}`)
    }
    const rows = [...views].map(([name, view]) => ({ name, ...view }))
    const [first] = rows
    return { marker, records: raw ?? [...(first?.accepted ?? []), ...(first?.rejected ?? [])], views: rows, problems }
  }

  #raw(path: string): Promise<readonly RecordName[]> {
    const names = `regexp_extract(payload, '"q":(\\d+)', 1) || '/' || regexp_extract(payload, '"n":(\\d+)', 1)`
    return this.#names(path, names)
  }

  #typed(path: string): Promise<readonly RecordName[]> {
    return this.#names(path, "q || '/' || n")
  }

  async #names(path: string, expression: string): Promise<readonly RecordName[]> {
    const sql = `SELECT ${expression} AS name FROM read_parquet('${path}', hive_partitioning = false)`
    const reader = await this.#connection.runAndReadAll(sql)
    return reader.getRows().map(([name]) => String(name))
  }
}

export function markerPaths(buckets: string, endpointId: string): readonly string[] {
  if (!existsSync(buckets)) return []
  return readdirSync(buckets).flatMap((bucket) => {
    const folder = join(buckets, bucket, 'in/let', endpointId, 'commits')
    if (!existsSync(folder)) return []
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.json'))
    return names.map((name) => join(folder, name))
  })
}

function deadLetters(path: string): readonly RecordName[] {
  const lines = gunzipSync(readFileSync(path))
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
  return lines.flatMap((line) => {
    const { record } = JSON.parse(line) as { readonly record: string }
    return [...recordsIn(record)].map(({ id, index }) => `${id}/${index}`)
  })
}
