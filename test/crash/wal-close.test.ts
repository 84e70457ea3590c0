/**
 * The log of an endpoint that is being deleted ends as closed, whatever crashes in between: then no segment is open, and none is opened any
 * more. What every engine promises is in log-engines.test.ts.
 */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Files, OpenFile } from '#lib/files.ts'
import { seededRandom } from '#lib/random.ts'
import { FaultyDisk } from '../support/faulty-files.ts'
import { crashes, logSettings, never, WalRig } from '../support/wal-rig.ts'

let rig: WalRig
beforeEach(async () => {
  rig = await WalRig.start()
})

describe('a log that is closed', () => {
  test('is not held by a directory that is named like a segment', async () => {
    for (const suffix of ['open', 'poisoned'])
      await rig.files.makeDirectory(`${rig.directory}/log/000000000001-abcdefghij.${suffix}`)
    void rig.wal.end('log', 'closed')
    await rig.pass(0)
    expect(await state()).toBe('closed: ')
  })

  test('is not marked before its last group is durable', async () => {
    await rig.append()
    const last = rig.append()
    void rig.wal.end('log', 'closed')
    expect(await state()).toBe('0 open')
    await last
    await rig.pass(0)
    expect(await state()).toBe('closed: 0 sealed')
  })

  test('is marked before a stop that follows at once has ended', async () => {
    await rig.append()
    void rig.wal.end('log', 'closed')
    await rig.wal.stop(never)
    expect(await state()).toBe('closed: 0 sealed')
  })

  test.each(['closed', 'fenced'] as const)('is sealed once if the node stops while it is being %s', async (reason) => {
    for (let pause = 0; pause < 8; pause += 1) {
      const disk = new FaultyDisk(seededRandom(7))
      rig = await WalRig.start({ files: withSlowSyncs(disk.mount()) })
      await rig.append()
      const operations: string[] = []
      disk.fault = ({ kind, path }) => void (path.endsWith('.open') && kind !== 'read' && operations.push(kind))
      void rig.wal.end('log', reason)
      await turns(pause)
      await rig.wal.stop(never)
      expect([pause, operations]).toEqual([pause, ['write', 'sync', 'rename', 'close']])
    }
  })

  test('is not closed while a segment waits for its recovery', async () => {
    await rig.append()
    rig.disk.fault = ({ kind, path }) => (kind === 'sync' && path.includes('/log/') ? { error: 'EIO' } : undefined)
    void rig.wal.end('log', 'closed')
    await rig.upkeep()
    await rig.upkeep()
    expect(await state()).toBe('0 open')
    rig.heal()
    await rig.upkeep()
    await rig.upkeep()
    expect(await state()).toBe('closed: 0 sealed')
  })

  test.each(['ENOSPC', 'EIO'])('is marked once an %s is over', async (error) => {
    await rig.append()
    rig.disk.fault = ({ path }) => (path.includes('closed') ? { error } : undefined)
    void rig.wal.end('log', 'closed')
    await rig.upkeep()
    expect(await state()).toBe('0 sealed')
    rig.heal()
    await rig.upkeep()
    expect(await state()).toBe('closed: 0 sealed')
  })

  test('writes again if its endpoint is active again: the mark is removed first, durably', async () => {
    await rig.append()
    void rig.wal.end('log', 'closed')
    await rig.pass(0)
    rig.wal.configure('log', logSettings)
    const operations: string[] = []
    rig.disk.fault = ({ kind, path }) => void operations.push(`${kind} ${path.split('/').at(-1)}`)
    expect(await rig.append()).toBe(1)
    const removed = operations.indexOf('remove closed')
    expect(removed).toBeGreaterThanOrEqual(0)
    expect(operations[removed + 1]).toBe('syncDirectory log')
    expect(operations.findIndex((operation) => operation.startsWith('open 000000000001'))).toBeGreaterThan(removed + 1)
    expect(await state()).toBe('0 sealed 1 open')
  })

  test('and configured in the same turn ends as open', async () => {
    await rig.append()
    void rig.wal.end('log', 'closed')
    rig.wal.configure('log', logSettings)
    expect(await rig.append()).toBe(1)
    await rig.upkeep()
    expect(await state()).toBe('0 sealed 1 open')
  })

  test('is removed with its mark once the endpoint is gone', async () => {
    await rig.append()
    void rig.wal.end('log', 'closed')
    await rig.pass(0)
    rig.wal.endUnowned(new Set())
    await rig.upkeep()
    expect(await state()).toBe('closed: 0 sealed')
    await rig.deliver()
    await rig.upkeep()
    expect(await rig.segments.logNames()).toEqual([])
  })

  test('and that comes back with a restored database is closed again', async () => {
    void rig.wal.end('log', 'closed')
    await rig.pass(0)
    rig.wal.endUnowned(new Set())
    void rig.wal.end('log', 'closed')
    await rig.upkeep()
    expect(await state()).toBe('closed: ')
  })
})

test.each(crashes)('with a %s at each step of closing: the next start finishes it, and no record is lost', async (fault) => {
  for (let at = 0; ; at += 1) {
    rig = await WalRig.start({ seed: at })
    await rig.append()
    await rig.append()
    const operations = rig.failAt(at, fault)
    void rig.wal.end('log', 'closed')
    await rig.upkeep()
    rig.heal()
    await rig.restart({ logs: [] })
    if (await isClosed()) expect(await state()).toBe('closed: 0 sealed')
    void rig.wal.end('log', 'closed')
    await rig.upkeep()
    expect(await state()).toBe('closed: 0 sealed')
    if (operations.length <= at) return
  }
})

test.each(crashes)('with a %s at each step of opening it again: no segment is beside the mark', async (fault) => {
  for (let at = 0; ; at += 1) {
    rig = await WalRig.start({ seed: at })
    void rig.wal.end('log', 'closed')
    await rig.pass(0)
    rig.wal.configure('log', logSettings)
    const operations = rig.failAt(at, fault)
    const seq = await rig.append().catch(() => undefined)
    rig.heal()
    rig.mount()
    const { isClosed, segments: found } = await rig.segments.readLog('log')
    if (isClosed) expect([found, seq]).toEqual([[], undefined])
    if (operations.length <= at) return
    await rig.restart({ logs: [] })
  }
})

async function isClosed(): Promise<boolean> {
  return (await rig.segments.readLog('log')).isClosed
}

async function state(): Promise<string> {
  const segments = (await rig.states()).join(' ')
  return `${(await isClosed()) ? 'closed: ' : ''}${segments}`
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** Each sync takes a few turns. */
function withSlowSyncs(files: Files): Files {
  const open: Files['open'] = async (...name) => {
    const file = await files.open(...name)
    const sync = async () => {
      await turns(5)
      await file.sync()
    }
    return Object.assign(Object.create(file) as OpenFile, { sync })
  }
  return Object.assign(Object.create(files) as Files, { open })
}
