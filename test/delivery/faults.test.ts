/** Faults of the node under delivery. Law: they park nothing, however long they last; only what fails because of its content is parked. */
import { readdir, rm, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import { runCli } from '../support/cli.ts'
import { aBoundView, aDestination, anEndpointTo, DeliveryNode } from '../support/delivery-node.ts'
import { FailingDisk } from '../support/failing-disk.ts'
import { FaultyConversions } from '../support/faulty-conversions.ts'
import { until } from '../support/until.ts'

/** No conversion accepts it, although every checksum is valid. */
const garbage = Buffer.from('not an envelope')

async function parked(node: DeliveryNode): Promise<readonly string[]> {
  return (await readdir(node.config.paths.parked)).filter((name) => name.endsWith('.parked.json'))
}

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: injected`), { code })
}

test.each(['EIO', 'EROFS', 'EMFILE', 'ENOENT'])('%s when segments are read parks none of them', async (code) => {
  const endpoint = anEndpointTo(aDestination())
  await using node = await DeliveryNode.create(endpoint)
  await node.seal(endpoint.id, '{"n":1}', '{"n":2}')
  let [isBroken, failures] = [true, 0]
  node.files = {
    ...systemFiles,
    open: async (path, mode) => {
      if (!isBroken || !path.endsWith('.wal')) return systemFiles.open(path, mode)
      failures += 1
      throw systemError(code)
    },
  }
  await node.start()
  await until('many attempts', () => failures > 20)
  await until('the reason', () => node.lag(endpoint.id)?.blocked_by === `${code}: injected`)
  expect(await parked(node)).toEqual([])
  isBroken = false
  await until('both commits', () => node.commits.length === 2)
})

test('a scratch folder that someone removed is made again', async () => {
  const endpoint = anEndpointTo(aDestination())
  await using node = await DeliveryNode.create(endpoint)
  await node.start()
  await rm(node.config.paths.scratch, { recursive: true })
  await rm(node.config.paths.parked, { recursive: true })
  await node.seal(endpoint.id, '{"n":1}')
  await until('the commit', () => node.commits.length === 1)
})

test('files that someone removed while they waited for their upload are built again', async () => {
  const endpoint = anEndpointTo(aDestination())
  await using node = await DeliveryNode.create(endpoint)
  node.stores.fault = () => 'refused'
  await node.start()
  await node.sealAll([
    [endpoint.id, '{"n":1}'],
    [endpoint.id, '{"n":2}'],
  ])
  await until('attempts', () => node.stores.attempts > 2)
  await rm(node.config.paths.scratch, { recursive: true })
  node.stores.fault = () => undefined
  await until('both commits', () => node.commits.length === 2)
})

test('a stop says what it waits for, and ends at its deadline', async () => {
  const endpoint = anEndpointTo(aDestination())
  await using node = await DeliveryNode.create(endpoint)
  node.stores.fault = () => 'refused'
  await node.start()
  await node.seal(endpoint.id, '{"n":1}')
  await until('the reason to be reported', () => node.lag(endpoint.id)?.blocked_by != null)
  const deadline = new AbortController()
  const stopped = node.stop(deadline.signal)
  const progress = () => node.log.flatMap((line) => (line.includes('stop waits for') ? [JSON.parse(line)] : []))[0]
  await until('its progress', () => progress() !== undefined)
  expect(progress()).toMatchObject({ segments: 1, reasons: [expect.stringContaining('SlowDown')] })
  deadline.abort()
  await stopped
  expect(node.commits).toEqual([])
})

test('a segment that fails is not parked while nothing else can be converted either', async () => {
  const [bad, good] = [anEndpointTo(aDestination('bad')), anEndpointTo(aDestination('good'))]
  await using node = await DeliveryNode.create(bad, good)
  await node.start()
  await rm(node.config.paths.scratch, { recursive: true })
  await writeFile(node.config.paths.scratch, 'not a directory')
  await node.sealAll([
    [bad.id, '{"n":1}', garbage],
    [good.id, '{"n":2}'],
  ])
  await until('both reasons', () => [bad, good].every(({ id }) => node.lag(id)?.blocked_by?.includes('EEXIST') === true))
  expect(await parked(node)).toEqual([])
  await rm(node.config.paths.scratch)
  await until('the good one', () => node.commits.length === 1)
  await until('the bad one', () => node.lag(bad.id)?.parked_segments === 1)
  expect(node.lag(bad.id)?.blocked_by).toMatch(/^1 segment is parked: .*envelope/)
})

test('a segment that always ends its conversion process is parked, and delivery goes on meanwhile', async () => {
  const views = [aBoundView({ name: 'poison' })]
  const bad = anEndpointTo(aDestination('bad'), { output_formats: ['parquet', 'parquet_views'], views })
  const good = anEndpointTo(aDestination('good'))
  await using node = await DeliveryNode.create(bad, good)
  node.conversionPool = new FaultyConversions()
  await node.start()
  await node.sealAll([
    [bad.id, '{"n":1}'],
    [good.id, '{"n":2}'],
  ])
  await until('the good one', () => node.commits.length === 1)
  await until('the bad one', () => node.lag(bad.id)?.parked_segments === 1)
  expect(node.lag(bad.id)?.blocked_by).toBe('1 segment is parked: the conversion process ended: killed by SIGSEGV')
})

test('stopping ends a conversion that would never end, and leaves no files', async () => {
  const views = [aBoundView({ name: 'busy' })]
  const endpoint = anEndpointTo(aDestination(), { output_formats: ['parquet', 'parquet_views'], views })
  await using node = await DeliveryNode.create(endpoint)
  let isBusy = false
  node.conversionPool = new FaultyConversions(systemClock, (_, { views }) => {
    isBusy ||= views.length > 0
  })
  await node.start()
  await node.seal(endpoint.id, '{"n":1}')
  const built = async () => await readdir(node.config.paths.scratch, { recursive: true })
  await until('the view', () => isBusy)
  const startedAt = performance.now()
  await node.stop(AbortSignal.abort())
  expect(performance.now() - startedAt).toBeLessThan(5_000)
  expect(await built()).toEqual([])
})

test('parked segments are tried again at each start, and when the operator says so', async () => {
  const endpoint = anEndpointTo(aDestination())
  await using node = await DeliveryNode.create(endpoint)
  await node.sealAll([
    [endpoint.id, '{"n":1}', garbage],
    [endpoint.id, '{"n":2}', garbage],
    [endpoint.id, '{"n":3}'],
  ])
  let parkings = 0
  node.files = {
    ...systemFiles,
    rename: async (from, to) => {
      await systemFiles.rename(from, to)
      if (to.endsWith('.parked.json')) parkings += 1
    },
  }
  await node.start()
  await until('two of them parked', () => parkings === 2)
  await until('the third', () => node.commits.length === 1)
  await node.stop()
  await node.start()
  await until('both parked again', () => parkings === 4)
  const retry = (...args: string[]) => runCli(['segments', 'retry', ...args], { config: node.config })
  expect(await retry('--all')).toMatchObject({ code: 0, out: expect.stringMatching(/^2 segments will be converted again/) })
  await until('both parked once more', () => parkings === 6)
  expect((await retry()).code).toBe(2)
  expect((await retry('--all', 'and-one')).code).toBe(2)
})

test('a parked segment is recorded once the disk takes the record, and delivery goes on meanwhile', async () => {
  const [bad, good] = [anEndpointTo(aDestination('bad')), anEndpointTo(aDestination('good'))]
  await using node = await DeliveryNode.create(bad, good)
  let isFull = true
  node.files = {
    ...systemFiles,
    open: (path, mode) =>
      isFull && path.includes('.parked.json') ? Promise.reject(systemError('ENOSPC')) : systemFiles.open(path, mode),
  }
  await node.sealAll([
    [bad.id, '{"n":1}', garbage],
    [good.id, '{"n":2}'],
  ])
  await node.start()
  await until('the good one', () => node.commits.length === 1)
  await until('the reason', () => node.lag(bad.id)?.blocked_by === 'ENOSPC: injected')
  isFull = false
  await until('the bad one', () => node.lag(bad.id)?.parked_segments === 1)
})

test.each(['EIO', 'EROFS', 'ENOSPC'])(
  '%s of everything: the process stays up, says so, and delivers when it is over',
  async (code) => {
    const endpoint = anEndpointTo(aDestination())
    await using node = await DeliveryNode.create(endpoint)
    const disk = new FailingDisk()
    node.files = disk.files
    await node.start()
    await node.seal(endpoint.id, '{"n":1}')
    await until('the first commit', () => node.commits.length === 1)
    disk.code = code
    await node.seal(endpoint.id, '{"n":2}')
    // A file system that is only read-only or full can still be listed.
    const isSaid = () =>
      node.control.heartbeats.some(({ reasons }) => reasons.includes(`the segments on this node cannot be listed (${code})`)) ||
      node.lag(endpoint.id)?.blocked_by?.includes(code)
    await until('the reason', () => isSaid() === true)
    expect(await parked(node)).toEqual([])
    disk.code = undefined
    await until('the second commit', () => node.commits.length === 2)
    await until('a healthy report', () => node.control.heartbeats.at(-1)?.healthy === true)
  },
)
