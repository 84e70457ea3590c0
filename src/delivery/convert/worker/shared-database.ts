/**
 * A database that small segments use one after the other, because opening one takes as long as the rest of their conversion.
 *
 * Owns: when it is opened and closed. Does not own: which segments may use it (run-task.ts).
 * Law: after work that failed, or that a view failed in, nothing uses the same database again.
 */
import { RecordDatabase } from '#records/record-database.ts'

export type SharedDatabaseOptions = {
  /** Contains the directories of all segments that use it. */
  readonly directory: string
  readonly memoryBytes: number
}

/** How many segments use one, so that what DuckDB keeps for itself is bounded. */
const usesMax = 1_000

export class SharedDatabase {
  #current: (SharedDatabaseOptions & { readonly database: RecordDatabase; uses: number }) | undefined

  /** Returns what `work` returns, or undefined if it throws or returns undefined. */
  async use<T>(
    options: SharedDatabaseOptions,
    work: (database: RecordDatabase) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    try {
      const current = await this.#open(options)
      current.uses += 1
      const result = await work(current.database)
      await current.database.clear()
      if (result === undefined || current.uses >= usesMax) this.#close()
      return result
    } catch {
      this.#close()
      return undefined
    }
  }

  async #open({ directory, memoryBytes }: SharedDatabaseOptions) {
    const { directory: knownDirectory, memoryBytes: knownBytes } = this.#current ?? {}
    if (directory !== knownDirectory || memoryBytes !== knownBytes) this.#close()
    // Small segments do not spill.
    this.#current ??= {
      ...{ directory, memoryBytes, uses: 0 },
      database: await RecordDatabase.open({ directories: [directory], memoryBytes }),
    }
    return this.#current
  }

  #close(): void {
    this.#current?.database.close()
    this.#current = undefined
  }
}
