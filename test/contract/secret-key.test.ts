import { rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newSecretKey } from '#lib/keyring.ts'
import { UserError } from '#lib/user-error.ts'
import { newControl } from '../support/control.ts'
import { newDatabase } from '../support/databases.ts'

test('the database has no secret as plain text, and another key prevents the start with one sentence', async () => {
  await using database = await newDatabase()
  const first = await newControl({ database })
  const stored = JSON.stringify([
    await first.store.db.selectFrom('signing_keys').selectAll().execute(),
    await first.store.db.selectFrom('secrets').selectAll().execute(),
  ])
  expect(stored).not.toContain('kty')
  expect(stored).toMatch(/"key_id":"[0-9a-f]{8}"/)
  await first[Symbol.asyncDispose]()

  const failure = await newControl({ database, environment: { INLET_SECRET_KEY: newSecretKey() } }).catch(
    (error: unknown) => error,
  )
  expect(failure).toBeInstanceOf(UserError)
  expect(String(failure)).toMatch(
    /^UserError: \w+\/\S+ in the database is encrypted with the key [0-9a-f]{8}, and INLET_SECRET_KEY has [0-9a-f]{8}: .+$/,
  )
})

test('without INLET_SECRET_KEY the key is created once, readable only by its owner; if it is missing later, the start says so', async () => {
  await using database = await newDatabase()
  const first = await newControl({ database, environment: { INLET_SECRET_KEY: '' } })
  const { directory } = first
  const path = join(directory, 'secret-key')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  await first.app.stop(AbortSignal.timeout(5_000))
  await first.store.close()
  const start = () => newControl({ database, directory, environment: { INLET_SECRET_KEY: '' } })
  await (await start())[Symbol.asyncDispose]()

  rmSync(path)
  await expect(start()).rejects.toThrow(/encrypted with the key [0-9a-f]{8}, and \S+secret-key is missing: restore it/)
  writeFileSync(path, 'short\n')
  await expect(start()).rejects.toThrow(/secret-key is not a list of keys/)
  rmSync(directory, { recursive: true })
})
