import type { Connection, RowAppender } from '#duckdb/database.ts'

/** Where a record comes from. */
export type RecordSource = {
  readonly protocol: string
  readonly topic: string
  readonly clientId: string
  /** JSON, or empty (model/record-attributes.ts). */
  readonly attributes: string
}

/** The number of a source is found again among this many; beyond them a source may get another number, which is as good. */
const REMEMBERED_MAX = 65_536

/** The table `sources`: a record names its source by the row id there. */
export class Sources {
  readonly #appender: RowAppender
  readonly #known = new Map<string, number>()
  #count = 0

  private constructor(appender: RowAppender) {
    this.#appender = appender
  }

  static async create(connection: Connection): Promise<Sources> {
    await connection.run('CREATE TABLE sources (protocol VARCHAR, topic VARCHAR, client_id VARCHAR, attributes VARCHAR)')
    return new Sources(await connection.appender('sources'))
  }

  /** The number of the source. */
  add({ protocol, topic, clientId, attributes }: RecordSource): number {
    const key = `${protocol} ${topic.length} ${clientId.length} ${topic}${clientId}${attributes}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    for (const text of [protocol, topic, clientId, attributes]) {
      if (text === '') this.#appender.appendNull()
      else this.#appender.appendVarchar(text)
    }
    this.#appender.endRow()
    if (this.#known.size >= REMEMBERED_MAX) this.#known.clear()
    this.#known.set(key, this.#count)
    this.#count += 1
    return this.#count - 1
  }

  flush(): void {
    this.#appender.flushSync()
  }

  /** After the last source. */
  finish(): void {
    this.#appender.closeSync()
  }
}
