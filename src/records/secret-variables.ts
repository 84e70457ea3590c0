/**
 * Gives statements the secrets that they name: as variables of the connection, each with a padded key.
 *
 * Law: the bytes reach DuckDB through an appender, never in the text of a statement. A statement whose secret is not set is not run: its
 * result would be NULL.
 */
import type { Connection } from '#duckdb/database.ts'
import { quoteIdentifier } from '#duckdb/quote.ts'
import type { SecretValues } from '#model/secret.ts'
import type { CompiledView } from '#views/compiled-view.ts'
import { type HmacPads, hmacPads, padVariable } from '#views/hmac.ts'

/** The view names a secret that this process does not have. */
export class MissingSecret extends Error {
  override readonly name = 'MissingSecret'

  constructor(names: readonly string[]) {
    const [first, ...others] = names.map((name) => JSON.stringify(name))
    const more = others.length === 0 ? '' : ` (and ${others.join(', ')})`
    super(`the secret ${first}${more} is missing here, so nothing is hashed: create it again, or publish a version without it`)
  }
}

const pads = ['inner', 'outer'] as const satisfies readonly (keyof HmacPads)[]

export class SecretVariables {
  readonly #connection: Connection
  /** By name, as set. */
  readonly #set = new Map<string, string>()

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Sets what a view needs. Throws MissingSecret. */
  async provide({ secrets: names }: Pick<CompiledView, 'secrets'>, values: SecretValues): Promise<void> {
    const missing = names.filter((name) => !Object.hasOwn(values, name))
    if (missing.length > 0) throw new MissingSecret(missing)
    for (const name of names) {
      const value = values[name] ?? ''
      if (this.#set.get(name) === value) continue
      const padded = hmacPads(Buffer.from(value, 'base64'))
      for (const pad of pads) await this.#setVariable(padVariable(name, pad), padded[pad])
      this.#set.set(name, value)
    }
  }

  async clear(): Promise<void> {
    for (const name of this.#set.keys())
      for (const pad of pads) await this.#connection.run(`RESET VARIABLE ${quoteIdentifier(padVariable(name, pad))}`)
    this.#set.clear()
  }

  async #setVariable(name: string, bytes: Uint8Array): Promise<void> {
    await this.#connection.run('CREATE OR REPLACE TABLE secret_pad (bytes BLOB)')
    const appender = await this.#connection.appender('secret_pad')
    appender.appendBlob(bytes)
    appender.endRow()
    appender.closeSync()
    await this.#connection.run(`SET VARIABLE ${quoteIdentifier(name)} = (SELECT bytes FROM secret_pad)`)
    await this.#connection.run('DROP TABLE secret_pad')
  }
}
