/** A producer under load, while ingest is killed and restarted. `INLET_TEST_SEED` repeats a run. */
import { randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { createProducer, type Receipt } from '#client/index.ts'
import { seededRandom } from '#lib/random.ts'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { runs } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const seed = Number(process.env['INLET_TEST_SEED'] ?? randomInt(2 ** 31))
const kills = runs(1, 12)

test(`each record that was sent is delivered once (INLET_TEST_SEED=${seed})`, { timeout: 240_000 }, async () => {
  const random = seededRandom(seed).fraction
  const below = (max: number) => Math.floor(random() * max)
  await using installation = await Installation.create({ environment: { INLET_LOG_LEVEL: 'error' } })
  await installation.start('control', 'ingest', 'delivery')
  const endpoint = await installation.endpoint({ bucket: 'produced' })
  const { ingestUrl: url, apiKey } = installation
  const producer = createProducer({ url, apiKey, endpoint: endpoint.id, batchRecordsMax: 50, concurrency: 4, lingerMs: 2 })
  const receipts: Promise<Receipt>[] = []
  let sending = true
  const load = (async () => {
    while (sending) {
      await producer.ready()
      for (let burst = 1 + below(40); burst > 0; burst -= 1) {
        const receipt = producer.send({ n: receipts.length })
        // Read at the end: until then a failure of the test would be buried under one for each receipt.
        receipt.catch(() => undefined)
        receipts.push(receipt)
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
  })()
  for (let kill = 0; kill < kills; kill += 1) {
    const wait = producer.stats.recordsStored + 50 + below(runs(500, 2_000))
    await until('some records to be stored', () => producer.stats.recordsStored >= wait, 60_000)
    await installation.kill('ingest')
    await installation.start('ingest')
  }
  sending = false
  await load
  await producer.close({ timeoutMs: 120_000 })
  const seqs = new Set((await Promise.all(receipts)).map(({ segment_seq }) => segment_seq))
  await installation.committed(endpoint.id, seqs, 120_000)
  const rows = await readWithDuckDb(installation.artifacts('produced', endpoint.id, 'parquet'))
  const found = rows.map(({ payload }) => (JSON.parse(String(payload)) as { n: number }).n).toSorted((a, b) => a - b)
  expect(found).toEqual(receipts.map((_, n) => n))
  expect(producer.stats).toMatchObject({ recordsStored: receipts.length, recordsFailed: 0, recordsPending: 0 })
  expect(producer.stats.retries).toBeGreaterThan(0)
})
