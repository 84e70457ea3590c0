/**
 * The interface to a service that publishes DNS records.
 *
 * Law: a call resolves once the service has confirmed every change, and a repeated change has the same result. After a failure each set has
 * its values from before or its new ones, never a part of them.
 */

/** The records of one type at a name: `values` replace all that are there, and none removes the set. */
export type RecordChange = {
  /** Without a dot at its end. */
  readonly name: string
  readonly type: 'A' | 'AAAA'
  readonly values: readonly string[]
  /** Seconds for which resolvers may keep the set. */
  readonly ttl: number
}

/** One of the texts at a name. Others may be there that somebody else published, such as the challenge of another ACME client. */
export type TextRecord = {
  readonly name: string
  /** At most 255 bytes, without quotes. */
  readonly text: string
  readonly ttl: number
}

export interface DnsProvider {
  /** Names the service and the account or zone there. What was published elsewhere has to be published again. */
  readonly target: string
  /** How long a call of `apply` with a hundred changes may take. */
  readonly applyTimeoutMs: number
  /** How long the service may take to show a confirmed change on all its servers. */
  readonly settleSeconds: number
  /** Waits for its turn where the service limits the rate. Throws RecordsRejected, or another error if later attempts may succeed. */
  apply(changes: readonly RecordChange[], signal: AbortSignal): Promise<void>
  /** Publishes the text, or removes it, and leaves the others at its name alone. Throws as `apply` does. */
  setText(record: TextRecord, isPublished: boolean, signal: AbortSignal): Promise<void>
  /** Closes idle connections. */
  close(): void
}

/** The service refuses at least one of the changes, whenever they are repeated, but may accept the others. */
export class RecordsRejected extends Error {
  override readonly name = 'RecordsRejected'
}
