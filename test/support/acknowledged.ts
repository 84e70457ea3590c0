/** Sends numbered records, one request at a time, and compares them with what arrives in the bucket. */
import { expect } from 'vitest'
import type { Installation } from './installation.ts'
import type { Marker } from './markers.ts'
import type { Customer, CustomerDestination } from './object-gateway.ts'
import { readWithDuckDb } from './parquet.ts'

/** Sends to one endpoint until it is stopped. Does not resend records that were rejected or got no response. */
export class Sender {
  readonly #installation: Installation
  readonly #endpointId: string
  readonly #recordsPerRequest: number
  readonly #padding: string
  readonly #pauseMs: number
  #next = 0
  #sending = false
  #running: Promise<void> = Promise.resolve()
  /** Numbers of the acknowledged records, by segment. */
  readonly acknowledged: { readonly number: number; readonly seq: number }[] = []
  /** Numbers of records whose fate is unknown because the connection broke. */
  readonly unknown = new Set<number>()
  refusals = 0

  constructor(
    installation: Installation,
    endpointId: string,
    {
      recordsPerRequest = 10,
      recordBytes = 20,
      pauseMs = 50,
    }: Partial<Record<'recordsPerRequest' | 'recordBytes' | 'pauseMs', number>> = {},
  ) {
    this.#installation = installation
    this.#endpointId = endpointId
    this.#recordsPerRequest = recordsPerRequest
    this.#padding = 'x'.repeat(Math.max(0, recordBytes - 20))
    this.#pauseMs = pauseMs
  }

  start(): void {
    this.#sending = true
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#sending = false
    await this.#running
  }

  /** Sends one request. Returns its status, or undefined without a response. */
  async send(): Promise<number | undefined> {
    const numbers = Array.from({ length: this.#recordsPerRequest }, () => this.#next++)
    const body = numbers.map((number) => `${JSON.stringify({ number, padding: this.#padding })}\n`).join('')
    try {
      const { status, body: receipt } = await this.#installation.ingest(this.#endpointId, body)
      if (status === 202) for (const number of numbers) this.acknowledged.push({ number, seq: receipt.segment_seq })
      else this.refusals += 1
      return status
    } catch {
      for (const number of numbers) this.unknown.add(number)
      return undefined
    }
  }

  /** Returns every segment that contains an acknowledged record. */
  get seqs(): ReadonlySet<number> {
    return new Set(this.acknowledged.map(({ seq }) => seq))
  }

  async #run(): Promise<void> {
    while (this.#sending) {
      await this.send()
      await new Promise((resolve) => setTimeout(resolve, this.#pauseMs))
    }
  }
}

/** Returns the numbers in the raw Parquet of these markers, after checking each file against its marker. */
export async function numbersIn(customer: Customer, bucket: string, markers: readonly Marker[]): Promise<readonly number[]> {
  await using files = await customer.download(bucket, markers, 'parquet')
  const rows = await readWithDuckDb(files.paths, "CAST(json_extract(payload, '$.number') AS INTEGER) AS number")
  return rows.map(({ number }) => Number(number))
}

/**
 * Checks that every acknowledged record is committed once, in files that match their markers. Other records may appear only if their
 * fate is unknown. The API must list the same commits as the bucket, in the order of each log.
 */
export async function expectExactlyOnce(
  { installation, customer, destination, endpointId, sender }: Delivered,
  isExpected: (seq: number) => boolean = () => true,
): Promise<void> {
  const markers = (await customer.markers(destination, endpointId)).filter(({ seq }) => isExpected(seq))
  const numbers = (await numbersIn(customer, destination.bucket, markers)).toSorted((a, b) => a - b)
  const expected = sender.acknowledged.filter(({ seq }) => isExpected(seq)).map(({ number }) => number)
  const surplus = new Set(numbers).difference(new Set(expected))
  expect([...surplus].filter((number) => !sender.unknown.has(number))).toEqual([])
  expect(numbers).toEqual([...expected, ...surplus].toSorted((a, b) => a - b))

  const commits = (await installation.commits(endpointId)).filter(({ seq }) => isExpected(seq)).toReversed()
  expect(new Set(commits.map(({ id }) => id)).size).toBe(commits.length)
  expect(commits.map(({ id }) => id).toSorted()).toEqual(markers.map(({ id }) => id).toSorted())
  for (const log of Map.groupBy(commits, ({ id }) => id.replace(/-\d+$/, '')).values()) {
    expect(log.map(({ seq }) => seq)).toEqual(log.map(({ seq }) => seq).toSorted((a, b) => a - b))
  }
}

export type Delivered = {
  readonly installation: Installation
  readonly customer: Customer
  readonly destination: CustomerDestination
  readonly endpointId: string
  readonly sender: Sender
}
