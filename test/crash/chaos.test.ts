/**
 * Kills random processes of a real installation at random under load. `INLET_TEST_SEED` repeats a run, `CHAOS_STEPS` makes it longer.
 * Law: every acknowledged record is committed exactly once, nothing is committed that was never sent, and a request is all or nothing.
 */
import { randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { isThorough } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const seed = Number(process.env['INLET_TEST_SEED'] ?? randomInt(2 ** 31))
const steps = Number(process.env['CHAOS_STEPS'] ?? 10)
/** Each has an endpoint of its own. */
const buckets = ['chaos-one', 'chaos-two'] as const
const view = {
  name: 'records',
  definition: { columns: [{ name: 'request', type: 'INTEGER', path: '$.request', required: true }] },
}

/** One request: `size` records that name their request. It is sent once and never retried. */
type Request = { readonly to: number; readonly size: number; outcome: 'acknowledged' | 'refused' | 'unknown' }

// npm run torture does more of this, for as long as you like.
test.runIf(isThorough)(`nothing acknowledged is lost (INLET_TEST_SEED=${seed})`, { timeout: 240_000 }, async () => {
  const random = randomFrom(seed)
  await using installation = await Installation.create({ environment: { INLET_LOG_LEVEL: 'error' } })
  const planes = ['control', 'ingest', 'delivery'] as const
  await installation.start(...planes)
  const endpoints: string[] = []
  for (const bucket of buckets) {
    endpoints.push((await installation.endpoint({ bucket, view: { ...view, name: bucket.replace('-', '_') } })).id)
  }
  const requests: Request[] = []
  const seqs = endpoints.map(() => new Set<number>())
  let sending = true
  const sender = async () => {
    while (sending) {
      const request: Request = { to: random(buckets.length), size: 1 + random(50), outcome: 'unknown' }
      const index = requests.push(request) - 1
      const body = Array.from({ length: request.size }, (_, record) => `{"request":${index},"record":${record}}\n`).join('')
      try {
        const { status, body: receipt } = await installation.ingest(endpoints[request.to] ?? '', body)
        request.outcome = status === 202 ? 'acknowledged' : 'refused'
        if (status === 202) seqs[request.to]?.add(receipt.segment_seq)
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
  }
  const senders = [sender(), sender(), sender()]
  for (let step = 0; step < steps; step++) {
    const seen = requests.length
    const wait = 20 + random(200)
    const victim = planes[random(planes.length)] ?? 'ingest'
    const ingestRuns = victim !== 'ingest'
    await until('some requests', () => requests.length > seen + wait)
    await installation.kill(victim)
    // Sometimes it stays down for a while, and sometimes another process is killed too.
    if (ingestRuns) await until('requests without it', () => requests.length > seen + wait + random(300))
    const second = random(3) === 0 ? planes.find((plane) => plane !== victim) : undefined
    if (second !== undefined) await installation.kill(second)
    await installation.start(...planes.filter((plane) => plane === victim || plane === second))
  }
  sending = false
  await Promise.all(senders)
  for (const [index, id] of endpoints.entries()) {
    await installation.committed(id, seqs[index] ?? [], 120_000)
    await until('the node to be empty', () => installation.walFiles(id).length === 0, 60_000)
    const bucket = buckets[index] ?? ''
    const raw = await readWithDuckDb(installation.artifacts(bucket, id, 'parquet'))
    const committed = Map.groupBy(
      raw.map(({ payload }): { request: number; record: number } => JSON.parse(String(payload))),
      ({ request }) => request,
    )
    for (const [number, { to, size, outcome }] of requests.entries()) {
      const records = committed.get(number)?.map(({ record }) => record) ?? []
      const whole = Array.from({ length: size }, (_, record) => record)
      if (to !== index || outcome === 'refused') expect(records, `request ${number}`).toEqual([])
      else if (outcome === 'acknowledged') expect(records, `request ${number}`).toEqual(whole)
      else expect([[], whole], `request ${number}`).toContainEqual(records)
    }
    expect(Math.max(...committed.keys())).toBeLessThan(requests.length)
    const typed = await readWithDuckDb(installation.artifacts(bucket, id, `views/${bucket.replace('-', '_')}/v1`))
    expect(typed.length).toBe(raw.length)
    const commits = await installation.commits(id)
    expect(new Set(commits.map((commit) => commit.seq)).size).toBe(commits.length)
  }
  expect(requests.filter(({ outcome }) => outcome === 'acknowledged').length).toBeGreaterThan(steps * 20)
})

/** Integers below a bound, the same for the same seed. */
function randomFrom(start: number): (below: number) => number {
  let state = start >>> 0
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
