import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'

test('a log that cannot be written does not end the process', async () => {
  const script = `
    import { createLogger } from ${JSON.stringify(new URL('./telemetry.ts', import.meta.url).href)}
    process.stdin.resume().on('end', () => {
      const logger = createLogger('test', 'info')
      for (let line = 0; line < 20; line += 1) logger.info({ line }, 'x'.repeat(1_000_000))
      setImmediate(() => process.stdout.write('alive'))
    })`
  // As on a full disk, every write fails.
  await using readOnly = await open(new URL(import.meta.url), 'r')
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], { stdio: ['pipe', 'pipe', readOnly.fd] })
  if (child.stdin === null || child.stdout === null) throw new Error('the child has no pipes')
  child.stdin.end()
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  expect([said, code]).toEqual(['alive', 0])
})
