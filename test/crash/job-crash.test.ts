/**
 * A real delivery process dies at a named moment of a backfill or a re-drive, and the next one continues from what it left.
 * Law: a segment has one output and one marker per view version; the retry overwrites objects that no marker lists.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { isThorough } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const child = resolve(import.meta.dirname, 'delivery-child.ts')
const definition = (type: string) => ({ columns: [{ name: 'n', type, path: '$.n', required: true }] })
/** Every third number is out of range in version 1, and every fifth is not a number. */
const numbers = Array.from({ length: 30 }, (_, n) => (n % 5 === 0 ? null : n % 3 === 0 ? 1_000 + n : n))
const refused = numbers.filter((n) => n === null || n >= 1_000)

const kinds = {
  backfill: { output: 'v2', accepted: numbers.filter((n) => n !== null) },
  redrive: { output: 'v2/redrive-v1', accepted: refused.filter((n) => n !== null) },
} as const

/** Objects and markers of version 2 in the bucket when the process dies. */
const table: readonly (readonly [moment: string, objects: number, markers: number, isQuick?: true])[] = [
  ['job: downloaded', 0, 0],
  ['job: before the first artifact', 0, 0],
  ['job: some artifacts uploaded', 1, 0, true],
  ['job: before the marker', 2, 0],
  ['job: marker, before the report', 2, 1],
]
const cases = table.flatMap(([moment, objects, markers, isQuick = false], index) => {
  if (!isQuick && !isThorough) return []
  const kind = index % 2 === 0 ? ('redrive' as const) : ('backfill' as const)
  return [{ moment, objects, markers, kind, index }]
})

describe('the delivery process dies', () => {
  let installation: Installation
  beforeAll(async () => {
    installation = await Installation.create()
    await installation.start('control', 'ingest')
  })
  afterEach(() => installation.end('delivery', 'SIGTERM'))
  afterAll(() => installation?.[Symbol.asyncDispose]())

  test.each(cases)('$moment, in a $kind', async ({ moment, objects, markers, kind, index }) => {
    const bucket = `crash-${index}`
    installation.spawn('delivery')
    const { id, viewId } = await installation.endpoint({
      bucket,
      view: { name: `numbers_${index}`, definition: definition('UTINYINT') },
    })
    const { body } = await installation.ingest(id, numbers.map((n) => JSON.stringify({ n })).join('\n'))
    await installation.committed(id, [body.segment_seq])
    await installation.end('delivery', 'SIGTERM')
    const next = await installation.ok('POST', `/v1/views/${viewId}/versions`)
    await installation.ok('PATCH', `/v1/views/${next.id}`, { definition: definition('INTEGER') })
    await installation.ok('POST', `/v1/views/${next.id}/publish`)
    const job = await installation.ok('POST', `/v1/views/${next.id}/${kind}`, { endpoint_id: id })
    const progress = () => installation.ok('GET', `/v1/jobs/${job.id}`)

    const [, signal] = await once(installation.spawn('delivery', { instead: child, args: [moment] }), 'exit')
    expect(signal, installation.log).toBe('SIGKILL')
    const left = madeBy(installation, bucket)
    expect({ objects: left.objects.length, markers: left.markers.length }).toEqual({ objects, markers })
    expect(await progress()).toMatchObject({ status: 'running', segments: { done: 0 }, counters: { processed: 0 } })

    installation.spawn('delivery')
    await until('the end of the job', async () => (await progress()).finished_at !== null, 60_000)
    const { output, accepted } = kinds[kind]
    const [views, dlq] = [`views/numbers_${index}/${output}`, `dlq/numbers_${index}/${output}`]
    const processed = kind === 'backfill' ? numbers.length : refused.length
    expect(await progress()).toMatchObject({
      ...{ status: 'succeeded', segments: { total: 1, done: 1 } },
      counters: { processed, accepted: accepted.length, dropped: 0, dlq: processed - accepted.length, failed: 0 },
    })
    const rows = await readWithDuckDb(installation.artifacts(bucket, id, views))
    expect(rows.map(({ n }) => Number(n))).toEqual(accepted)
    const end = madeBy(installation, bucket)
    expect(end.markers).toHaveLength(1)
    const artifacts = installation.markers(bucket, id).flatMap((marker) => Object.entries(marker.artifacts))
    const listed = artifacts.filter(([name]) => name === views || name === dlq).map(([, artifact]) => artifact)
    expect(end.objects.toSorted()).toEqual(listed.map(({ key }) => key).toSorted())
    for (const { key, bytes, sha256 } of listed) {
      const file = readFileSync(join(installation.buckets, bucket, key))
      expect([file.length, createHash('sha256').update(file).digest('hex')]).toEqual([bytes, sha256])
    }
  })
})

/** Returns the objects of version 2. */
function madeBy(
  installation: Installation,
  bucket: string,
): { readonly objects: readonly string[]; readonly markers: readonly string[] } {
  const folder = join(installation.buckets, bucket, 'in/let')
  const keys = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(join(installation.buckets, bucket).length + 1))
  return {
    objects: keys.filter((key) => key.includes('/v2/')),
    markers: keys.filter((key) => /\.numbers_\d-v2\.json$/.test(key)),
  }
}
