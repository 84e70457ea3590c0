import { Buffer } from 'node:buffer'
import type { Connection, RowAppender } from '#duckdb/database.ts'
import { parseEnvelope } from '#model/record-envelope.ts'

/** The origin of a record. */
export type RecordSource = {
  readonly protocol: string
  readonly topic: string
  readonly clientId: string
  /** The other fields of the envelope as JSON (model/record-envelope.ts), or ''. */
  readonly attributes: string
}

/** Number of sources that are deduplicated. Above it, a source may get a second number, which is harmless. */
const KNOWN_MAX = 65_536

/** The table `sources`: a record names its source by the row id there. */
export class Sources {
  readonly #appender: RowAppender
  readonly #known = new Map<string, number>()
  #count = 0

  private constructor(appender: RowAppender) {
    this.#appender = appender
  }

  static async create(connection: Connection): Promise<Sources> {
    await connection.run(
      'CREATE OR REPLACE TABLE sources (protocol VARCHAR, topic VARCHAR, client_id VARCHAR, attributes VARCHAR)',
    )
    return new Sources(await connection.appender('sources'))
  }

  /** Returns the number of the source that an encoded envelope describes. Each distinct envelope is decoded once. */
  addEnvelope(envelope: Uint8Array): number {
    const { buffer, byteOffset, byteLength } = envelope
    // An envelope starts with a brace, so its text cannot equal a key of `add`.
    const text = Buffer.from(buffer, byteOffset, byteLength).toString('utf8')
    return this.#known.get(text) ?? this.#insert(text, sourceOf(text))
  }

  /** Returns the number of the source. */
  add(source: RecordSource): number {
    const { protocol, topic, clientId, attributes } = source
    const key = `${protocol} ${topic.length} ${clientId.length} ${topic}${clientId}${attributes}`
    return this.#known.get(key) ?? this.#insert(key, source)
  }

  #insert(key: string, { protocol, topic, clientId, attributes }: RecordSource): number {
    for (const text of [protocol, topic, clientId, attributes]) {
      if (text === '') this.#appender.appendNull()
      else this.#appender.appendVarchar(text)
    }
    this.#appender.endRow()
    if (this.#known.size >= KNOWN_MAX) this.#known.clear()
    this.#known.set(key, this.#count)
    this.#count += 1
    return this.#count - 1
  }

  flush(): void {
    this.#appender.flushSync()
  }

  /** Call it after the last source. */
  finish(): void {
    this.#appender.closeSync()
  }
}

function sourceOf(envelope: string): RecordSource {
  const { protocol, topic = '', client_id: clientId = '', ...others } = parseEnvelope(envelope)
  return { protocol, topic, clientId, attributes: Object.keys(others).length === 0 ? '' : JSON.stringify(others) }
}
