import { expect, test } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import { warnAboutLocalBuckets } from './local-buckets.ts'

test.each([
  ['one machine', '127.0.0.1', 'directory', false, 0],
  ['several control processes', '127.0.0.1', 'directory', true, 1],
  ['nodes on other machines', '0.0.0.0', 'directory', false, 1],
  ['buckets in S3', '0.0.0.0', 's3', true, 0],
])('buckets in directories: %s', (_, host, objectStore, isShared, warnings) => {
  const lines: string[] = []
  const logger = createLogger('control', null, undefined, { write: (line) => void lines.push(line) })
  const config = { objectStore, nodeApiListen: { host, port: 8082 }, paths: { buckets: '/data/buckets' } }
  warnAboutLocalBuckets(config, isShared, logger)
  expect(lines).toHaveLength(warnings)
  for (const line of lines) expect(line).toContain('each machine writes to buckets on its own disk')
})
