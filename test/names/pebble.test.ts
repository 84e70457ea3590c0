/** Checks that the ACME server behaves as the suites of this folder assume. */
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { json } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { describeAcme } from '../support/name-server.ts'

describeAcme('the ACME server', ({ directoryUrl, caFile, root }) => {
  test('serves its directory to clients that trust its own certificate', async () => {
    const [response] = (await once(get(directoryUrl, { ca: readFileSync(caFile) }), 'response')) as [IncomingMessage]
    expect(await json(response)).toMatchObject({ newOrder: expect.stringContaining('https://') })
    await expect(once(get(directoryUrl), 'response')).rejects.toThrow(/self-signed/)
  })

  test('says which root its certificates chain to', () => {
    expect(new X509Certificate(root).ca).toBe(true)
  })
})
