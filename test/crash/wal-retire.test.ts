/** Logs of deleted endpoints are removed once they are empty, whatever crashes in between. What every engine promises is in log-engines.test.ts. */
import { beforeEach, describe, expect, test } from 'vitest'
import { crashes, logSettings, never, WalRig } from '../support/wal-rig.ts'

const noLogs: ReadonlySet<string> = new Set()
const allLogs: ReadonlySet<string> = new Set(['log', 'other'])
let rig: WalRig

beforeEach(async () => {
  rig = await WalRig.start()
})

describe('a log that is retired', () => {
  test('is sealed at once, and removed with its high-water file after its last segment', async () => {
    const waiting = rig.append()
    rig.wal.endUnowned(noLogs)
    expect(await waiting).toBe(0)
    await rig.pass(0)
    expect(await rig.states()).toEqual(['0 sealed'])
    await rig.upkeep()
    expect(await rig.segments.logNames()).toEqual(['log'])
    await rig.deliver()
    await rig.upkeep()
    expect(await rig.segments.logNames()).toEqual([])
    rig.disk.crash()
    rig.mount()
    expect(await rig.segments.logNames()).toEqual([])
    expect(rig.disk.paths()).toEqual(ownFiles())
  })

  test('is kept while it has a quarantined file', async () => {
    await rig.append()
    rig.wal.endUnowned(noLogs)
    await rig.pass(0)
    const [segment] = await rig.segments.list()
    if (segment === undefined) throw new Error('no segment')
    const kept = await rig.segments.quarantine(segment, 'a test')
    await rig.upkeep()
    expect(await rig.states()).toEqual(['0 quarantined'])
    await rig.files.remove(kept)
    await rig.upkeep()
    expect(await rig.segments.logNames()).toEqual([])
  })

  test('is kept while a segment waits for its recovery', async () => {
    await rig.append()
    rig.disk.fault = ({ kind, path }) => (kind === 'sync' && path.includes('/log/') ? { error: 'EIO' } : undefined)
    rig.wal.endUnowned(noLogs)
    await rig.upkeep()
    await rig.upkeep()
    expect(await rig.states()).toEqual(['0 open'])
    rig.heal()
    await rig.upkeep()
    expect(await rig.states()).toEqual(['0 sealed'])
    await rig.deliver()
    await rig.upkeep()
    expect(await rig.segments.logNames()).toEqual([])
  })

  test('is sealed by a stop that follows at once', async () => {
    await rig.append()
    rig.wal.endUnowned(noLogs)
    await rig.wal.stop(never)
    expect(await rig.states()).toEqual(['0 sealed'])
  })
})

describe('a log found at the start', () => {
  beforeEach(async () => {
    await rig.append()
    await rig.wal.stop(never)
    await rig.restart({ logs: [] })
  })

  test('is kept until a configuration is applied', async () => {
    await rig.deliver()
    await rig.upkeep()
    await rig.upkeep()
    expect(await rig.segments.logNames()).toEqual(['log'])
  })

  test('is removed once it is empty and a configuration does not claim it', async () => {
    rig.wal.configure('other', logSettings)
    rig.wal.endUnowned(new Set(['other']))
    await rig.upkeep()
    expect(await rig.segments.logNames()).toEqual(['log'])
    await rig.deliver()
    await rig.upkeep()
    expect(await rig.segments.logNames()).toEqual([])
  })

  test('is kept if a configuration claims it', async () => {
    rig.wal.configure('log', logSettings)
    rig.wal.endUnowned(allLogs)
    await rig.deliver()
    await rig.upkeep()
    expect(await rig.segments.logNames()).toEqual(['log'])
    expect(await rig.append()).toBe(1)
  })
})

describe('an endpoint that comes back with a restored database', () => {
  test.each(['sealed', 'empty', 'removed'] as const)('while its log is %s: the seq continues', async (when) => {
    await rig.append()
    await rig.pass(60_000)
    await rig.append()
    rig.wal.endUnowned(noLogs)
    if (when !== 'sealed') {
      await rig.pass(0)
      await rig.deliver()
    }
    if (when === 'removed') await rig.upkeep()
    expect(await rig.segments.logNames()).toEqual(when === 'removed' ? [] : ['log'])
    rig.wal.configure('log', logSettings)
    rig.wal.endUnowned(allLogs)
    expect(await rig.append()).toBe(2)
    await rig.upkeep()
    await rig.wal.stop(never)
    expect((await rig.segments.list()).map(({ seq }) => seq).at(-1)).toBe(2)
  })

  test('during the removal: its new segment is kept', async () => {
    await rig.append()
    rig.wal.endUnowned(noLogs)
    await rig.pass(0)
    await rig.deliver()
    const appended: Promise<number>[] = []
    rig.disk.fault = ({ kind }) => {
      if (kind !== 'removeDirectory' || appended.length > 0) return undefined
      rig.wal.configure('log', logSettings)
      rig.wal.endUnowned(allLogs)
      appended.push(rig.append())
      return undefined
    }
    await rig.upkeep()
    expect(await Promise.all(appended)).toEqual([1])
    await rig.upkeep()
    expect(await rig.states()).toEqual(['1 open'])
    rig.disk.crash()
    await rig.restart({ logs: [] })
    expect(await rig.states()).toEqual(['1 sealed'])
  })

  test('and is deleted and restored again: the seq continues', async () => {
    for (let seq = 0; seq < 4; seq += 1) {
      expect(await rig.append()).toBe(seq)
      rig.wal.endUnowned(noLogs)
      if (seq % 2 === 0) rig.wal.configure('log', logSettings)
      await rig.pass(0)
      await rig.deliver()
      await rig.upkeep()
      rig.wal.configure('log', logSettings)
    }
  })
})

describe('the removal', () => {
  /** Two segments were delivered and committed. */
  async function emptied(): Promise<void> {
    await rig.append()
    await rig.pass(60_000)
    await rig.append()
    rig.wal.endUnowned(noLogs)
    await rig.pass(0)
    await rig.deliver()
  }

  test('stops at a file that the listing missed, and keeps the high-water mark', async () => {
    await rig.append()
    rig.wal.endUnowned(noLogs)
    await rig.pass(0)
    let hidden = false
    // A listing during a rename may show neither name.
    const list = async (path: string) => {
      const entries = await files.list(path)
      if (hidden || !path.endsWith('/log')) return entries
      hidden = true
      return entries.filter(({ name }) => name === 'high-water')
    }
    await rig.wal.stop(never)
    const { files } = rig
    await rig.restart({ logs: [], files: { ...files, list } })
    rig.wal.endUnowned(noLogs)
    hidden = false
    await rig.upkeep()
    expect(hidden).toBe(true)
    expect(await rig.states()).toEqual(['0 sealed'])
    await rig.deliver()
    await rig.wal.stop(never)
    await rig.restart({ logs: [] })
    rig.wal.configure('log', logSettings)
    expect(await rig.append()).toBe(1)
  })

  test('is retried if the disk fails', async () => {
    await emptied()
    let failures = 0
    rig.disk.fault = ({ kind }) => (kind === 'removeDirectory' && failures++ < 2 ? { error: 'EIO' } : undefined)
    await rig.upkeep()
    expect(await rig.segments.logNames()).toEqual(['log'])
    await rig.upkeep()
    await rig.upkeep()
    expect(await rig.segments.logNames()).toEqual([])
  })

  test.each(crashes)(
    'with a %s at each step: the next start finishes it, or continues above control’s last commit',
    async (fault) => {
      for (let at = 0; ; at += 1) {
        rig = await WalRig.start({ seed: at })
        await emptied()
        const operations = rig.failAt(at, fault)
        await rig.upkeep()
        if (operations.length <= at) return
        rig.heal()
        await rig.restart({ logs: [] })
        if (at % 2 === 0) {
          rig.wal.endUnowned(noLogs)
          // A power cut may bring removed segments back; delivery knows their commits, and removes them again.
          await rig.deliver()
          await rig.upkeep()
          expect(await rig.segments.logNames()).toEqual([])
          expect(rig.disk.paths()).toEqual(ownFiles())
        } else {
          rig.wal.configure('log', { ...logSettings, seqAbove: 1 })
          rig.wal.endUnowned(allLogs)
          await rig.upkeep()
          expect(await rig.append()).toBe(2)
        }
      }
    },
  )
})

/** Files of the directory itself. */
function ownFiles(): readonly string[] {
  return ['open-segments', 'salt-key'].map((name) => `${rig.directory}/${name}`)
}
