import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemFiles as files } from '#lib/files.ts'
import { createLogger } from '#lib/telemetry.ts'
import { NodeFence } from './node-fence.ts'

test('each process says once why it is refused, also if the other one has stored it before it started', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-fence-'))
  try {
    const open = async () => {
      const said: string[] = []
      const logger = createLogger('test', 'error', undefined, { write: (line) => said.push(JSON.parse(line).msg) })
      return { said, fence: await NodeFence.open({ path: join(directory, 'fence'), files, logger }) }
    }
    const first = await open()
    await first.fence.refused('node_adopted')
    const second = await open()
    for (const { fence, said } of [first, second]) {
      await fence.refused('node_adopted')
      await fence.refused('node_adopted')
      expect(said).toEqual([expect.stringContaining('another machine adopted the log of this node')])
    }
  } finally {
    await rm(directory, { recursive: true })
  }
})
