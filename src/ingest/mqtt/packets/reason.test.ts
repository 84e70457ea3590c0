import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { reasons } from './reason.ts'

test('the documentation lists exactly these reasons', () => {
  const text = readFileSync(new URL('../../../../docs/mqtt.md', import.meta.url), 'utf8')
  const table = [...text.matchAll(/^\| 0x([0-9A-F]{2}) ([^|]+) \| (\d?)/gm)].map(([, code, name = '', connack]) => ({
    code: Number.parseInt(code ?? '', 16),
    name: name.toLowerCase().replaceAll(' ', '_'),
    connack: connack === '' ? undefined : Number(connack),
  }))
  // The documentation has the names of the standard.
  const names: Record<string, string> = {
    bad_user_name_or_password: 'bad_credentials',
    client_identifier_not_valid: 'client_id_not_valid',
  }
  expect(table.map(({ name, ...rest }) => ({ name: names[name] ?? name, ...rest }))).toEqual(
    Object.entries(reasons).map(([name, { code, connack }]) => ({ name, code, connack })),
  )
})
