import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { readConfig } from '#config/config.ts'
import type { Logger } from '#lib/telemetry.ts'
import { warnAboutPermissions } from './data-permissions.ts'

test('warns about what other users can read, and says what to do', async () => {
  const data = await mkdtemp(join(tmpdir(), 'inlet-permissions-'))
  try {
    await mkdir(join(data, 'buckets'), { mode: 0o750 })
    await writeFile(join(data, 'inlet.db'), '', { mode: 0o600 })
    const warningsOf = async (mode: number, environment = {}) => {
      await chmod(data, mode)
      const warn = vi.fn()
      await warnAboutPermissions(readConfig({ INLET_DATA_DIR: data, ...environment }), { warn } as unknown as Logger)
      return warn.mock.calls.map(([{ remedy }]) => remedy)
    }
    expect(await warningsOf(0o700)).toEqual([])
    expect(await warningsOf(0o755)).toEqual([`chmod -R go= ${data} ${data}/buckets`])
    expect(await warningsOf(0o710, { INLET_BUCKETS_GROUP: '7' })).toEqual([])
    await mkdir(join(data, 'node'), { mode: 0o710 })
    expect(await warningsOf(0o710, { INLET_BUCKETS_GROUP: '7', INLET_WORKER_USER: '8' })).toEqual([])
    expect(await warningsOf(0o710, { INLET_BUCKETS_GROUP: '7' })).toEqual([`chmod -R go= ${data}/node`])
    await rm(join(data, 'node'), { recursive: true })
    await chmod(join(data, 'inlet.db'), 0o640)
    expect(await warningsOf(0o710, { INLET_BUCKETS_GROUP: '7' })).toEqual([`chmod -R go= ${data}/inlet.db`])
    await rm(data, { recursive: true })
    const warn = vi.fn()
    await warnAboutPermissions(readConfig({ INLET_DATA_DIR: data }), { warn } as unknown as Logger)
    expect(warn).not.toHaveBeenCalled()
  } finally {
    await rm(data, { recursive: true, force: true })
  }
})
