/**
 * The DuckDB of record tables: of one, or of several one after the other.
 *
 * Opening it takes half of the CPU time of a conversion of a few records.
 * Law: it has the records and tables of one segment at most. `clear` leaves nothing of it.
 */
import { type Connection, Database, type DatabaseOptions } from '#duckdb/database.ts'
import { quoteIdentifier } from '#duckdb/quote.ts'
import { assert } from '#lib/assert.ts'
import { Observer } from './observer.ts'
import type { RecordRuns } from './record-runs.ts'
import { registerRuns } from './runs-in-sql.ts'
import { SecretVariables } from './secret-variables.ts'

export class RecordDatabase {
  readonly connection: Connection
  readonly observer: Observer
  readonly secrets: SecretVariables
  readonly #database: Database
  #runs: RecordRuns | undefined

  private constructor(database: Database, connection: Connection, observer: Observer) {
    this.#database = database
    this.connection = connection
    this.observer = observer
    this.secrets = new SecretVariables(connection)
    registerRuns(connection, {
      open: (from, to) => {
        assert(this.#runs !== undefined, 'the database has records')
        return this.#runs.open(from, to)
      },
    })
  }

  static async open(options: Pick<DatabaseOptions, 'directories' | 'spill' | 'memoryBytes'>): Promise<RecordDatabase> {
    const database = await Database.open({ ...options, orderedConnections: 1 })
    try {
      return new RecordDatabase(database, database.connectOrdered(), new Observer(await database.connect()))
    } catch (error) {
      database.close()
      throw error
    }
  }

  /** Lets statements read the records. */
  use(runs: RecordRuns): void {
    assert(this.#runs === undefined, 'the database is clear')
    this.#runs = runs
  }

  /** Removes everything of the segment but the tables to keep, so that the database can be used for another one. */
  async clear(kept: ReadonlySet<string> = new Set()): Promise<void> {
    this.#runs = undefined
    await this.secrets.clear()
    const { rows } = await this.connection.query('SELECT table_name FROM duckdb_tables()')
    const names = rows.map(([name]) => String(name)).filter((name) => !kept.has(name))
    for (const name of names) await this.connection.run(`DROP TABLE ${quoteIdentifier(name)}`)
  }

  close(): void {
    this.#database.close()
  }
}
