import { execFile } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const program = fileURLToPath(new URL('../main.ts', import.meta.url))

test('an old Node reads the entry file and names the version that is needed', async () => {
  // Old versions refuse TypeScript before they read it.
  expect(realpathSync(program)).toMatch(/\.js$/)
  const versions = 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.20.2" } })'
  const run = promisify(execFile)(process.execPath, ['--import', `data:text/javascript,${versions}`, program, '--version'])
  await expect(run).rejects.toMatchObject({
    ...{ code: 1, stdout: '' },
    stderr: expect.stringMatching(/^Inlet needs Node 24 or newer, and this is Node 20\.20\.2\. .*npm ci.*\n$/),
  })
})
