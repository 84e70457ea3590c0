import { Buffer } from 'node:buffer'
import { afterEach, expect, test } from 'vitest'
import { KiB, MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { ExportConversions } from './export-conversions.ts'
import { memoryOf } from './json-memory.ts'
import { startWorkerThread } from './worker-thread.ts'

const newConversions = (heapMiB?: number) =>
  new ExportConversions({ startThread: startWorkerThread, clock: systemClock, ...(heapMiB !== undefined && { heapMiB }) })
let conversions = newConversions()
afterEach(async () => {
  await conversions.stop()
  conversions = newConversions()
})

const body = (...texts: readonly string[]) =>
  Buffer.from(
    JSON.stringify({
      resourceLogs: [{ scopeLogs: [{ logRecords: texts.map((text) => ({ body: { stringValue: text } })) }] }],
    }),
  )
/** Valid JSON that becomes many times its size in memory. */
const brackets = (bytes: number) => Buffer.from(`{"resourceLogs":[{"x":[${'{},'.repeat(bytes / 3)}{}]}]}`)

const run = (account: string, json: Buffer | undefined, by = conversions) =>
  by.run({
    owner: { tenant: account, member: account, weight: 1 },
    encoding: 'json',
    maxBytes: 10 * MiB,
    body: () => json && [json.subarray(0, 5), json.subarray(5)],
  })

test('makes a line of each record', async () => {
  const converted = await run('a', body('one', 'two'))
  expect(converted).toMatchObject({ records: 2, tooLarge: 0 })
  expect(Buffer.concat(converted?.payload ?? []).toString()).toBe('{"body":"one"}\n{"body":"two"}\n')
})

test('while it parses, the process does other work', async () => {
  let turns = 0
  const isDone = run('a', brackets(6 * MiB)).then(() => true)
  while (!(await Promise.race([isDone, new Promise((resolve) => setTimeout(resolve, 1, false))]))) turns += 1
  expect(turns).toBeGreaterThan(10)
})

test('accounts take turns', async () => {
  const order: string[] = []
  const all = ['a', 'a', 'a', 'a', 'b'].map(async (account) => {
    await run(account, body('x'))
    order.push(account)
  })
  await Promise.all(all)
  expect(order.join('')).toBe('abaaa')
})

test('nothing is converted for a client that left', async () => {
  expect(await run('a', undefined)).toBeUndefined()
})

/** As many elements as the bound allows at this size of the heap. */
function largest(element: (index: number) => string, heapMiB: number): Buffer {
  const memory = memoryOf(Buffer.from(`${element(9_999_999)},`))
  const elements = Array.from({ length: Math.floor((heapMiB * MiB * 0.89) / memory) }, (_, index) => element(index))
  return Buffer.from(`{"resourceLogs":[{"x":[${elements.join(',')}]}]}`)
}

// V8 would end the process of the tests.
test.each([
  ['empty objects', () => '{}'],
  ['empty arrays', () => '[]'],
  ['keys that are all different', (index) => `{"k${index.toString(36)}":1}`],
  ['doubles', () => '1.5'],
  ['short texts', (index) => `"${index.toString(36)}"`],
  ['short texts of two bytes a character', (index) => `"ж${index.toString(36)}"`],
  ['deep arrays', () => `${'['.repeat(50)}1.5${']'.repeat(50)}`],
] as const satisfies readonly (readonly [string, (index: number) => string])[])(
  'a request of %s that is not refused fits',
  async (_, element) => {
    const heapMiB = 80
    const some = newConversions(heapMiB)
    expect(await run('a', largest(element, heapMiB), some)).toMatchObject({ records: 0 })
    await some.stop()
  },
)

test('a request that does not fit in memory is refused, and the next one is converted', async () => {
  const little = newConversions(32)
  const refused = run('a', brackets(8 * MiB), little)
  const next = run('a', body('x'), little)
  await expect(refused).rejects.toMatchObject({ code: 'payload_too_large', message: expect.stringContaining('smaller batches') })
  expect(await next).toMatchObject({ records: 1 })
  await little.stop()
})

test('a message says what is wrong', async () => {
  await expect(run('a', Buffer.from('{"resourceLogs":'))).rejects.toMatchObject({ code: 'bad_request' })
  await expect(run('a', Buffer.from(`"${'x'.repeat(KiB)}`))).rejects.toMatchObject({ code: 'bad_request' })
})
