import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Config, readConfig } from '#config/config.ts'
import { newId } from '#model/id.ts'
import { aLag } from '../../../test/support/lags.ts'
import { progressOf } from './adopt.ts'
import { adoptedConfig } from './adopted-directory.ts'

describe('what is left', () => {
  const id = newId()
  const held = (change: Partial<Parameters<typeof aLag>[1]> = {}) => [aLag(id, { undelivered_segments: 0, ...change })]
  const everything = (lags: ReturnType<typeof held>) => ({ isCurrent: true, lags, reportedLags: lags, reports: 0, problem: null })

  test.each([
    [true, 'nothing is left', everything([])],
    [true, 'the log of a deleted endpoint is closed', everything(held({ closed: true }))],
    [true, 'the rest needs a person', everything(held({ parked_segments: 1 }))],
    [false, 'a segment waits', everything(held({ undelivered_segments: 1 }))],
    [false, 'a segment is not sealed', everything(held({ open_segments: 1 }))],
    [false, 'the log of a deleted endpoint is not closed', everything(held())],
    [false, 'control does not know yet', { ...everything([]), reportedLags: held({ undelivered_segments: 1 }) }],
    [false, 'there was no report', { ...everything([]), reportedLags: undefined }],
    [false, 'a commit is not recorded', { ...everything([]), reports: 1 }],
    [false, 'the segments cannot be listed', { ...everything([]), problem: 'EIO' }],
    [false, 'the configuration may be old', { ...everything([]), isCurrent: false }],
  ])('done: %s if %s', (isDone, _, of) => expect(progressOf(of).isDone).toBe(isDone))

  test('is counted, with the reasons', () => {
    const lags = [
      ...held({ open_segments: 1, undelivered_segments: 2, blocked_by: 'no access' }),
      aLag(newId(), { parked_segments: 3 }),
    ]
    expect(progressOf({ ...everything(lags), reports: 2, problem: 'EIO' })).toMatchObject({
      ...{ segments: 4, forPerson: 3, reasons: ['EIO', 'no access'] },
    })
  })
})

describe('the directory', () => {
  let directory = ''
  let config: Config
  const id = newId()
  beforeEach(async () => {
    directory = await realpath(await mkdtemp(join(tmpdir(), 'inlet-adopt-')))
    config = readConfig({ INLET_DATA_DIR: join(directory, 'own') })
  })
  afterEach(() => rm(directory, { recursive: true }))

  async function given(wal: string, ownId?: string): Promise<string> {
    const path = join(directory, wal)
    await mkdir(path, { recursive: true })
    await writeFile(join(path, 'node-id'), `${id}\n`)
    if (ownId !== undefined) await writeFile(join(path, '../id'), ownId)
    return path
  }

  test('may be the data directory of a node; buckets and the join secret are those of this machine', async () => {
    await given('gone/node/wal')
    const { paths } = await adoptedConfig(config, join(directory, 'gone'))
    expect(paths.wal).toBe(join(directory, 'gone/node/wal'))
    expect(paths.nodeCredential).toBe(join(directory, 'gone/node/credential'))
    expect([paths.buckets, paths.nodeToken]).toEqual([config.paths.buckets, config.paths.nodeToken])
  })

  test('may be a WAL inside of one', async () => {
    const wal = await given('gone/node/wal', id)
    expect((await adoptedConfig(config, wal)).paths.data).toBe(join(directory, 'gone'))
  })

  test('may be a WAL alone, also if it is mounted elsewhere the next time', async () => {
    for (const name of ['here', 'there']) {
      const wal = await given(name)
      const { paths } = await adoptedConfig(config, wal)
      expect(paths.data).toBe(join(directory, 'own/adopted', id))
      expect(await realpath(paths.wal)).toBe(wal)
    }
  })

  test.each([
    ['nothing there', 'nowhere', 'neither the data directory of a node'],
    ['that of this machine', 'own', 'without --adopt'],
    ['the WAL of this machine', 'own/node/wal', 'without --adopt'],
  ])('is refused if it is %s', async (_, name, message) => {
    await given('own/node/wal', id)
    await expect(adoptedConfig(config, join(directory, name))).rejects.toThrow(message)
  })

  test('is refused if its id is damaged', async () => {
    const wal = await given('here')
    await writeFile(join(wal, 'node-id'), 'x')
    await expect(adoptedConfig(config, wal)).rejects.toThrow('is not the id of a node')
  })
})
