import { expect, test } from 'vitest'
import type { Endpoint } from '../../api/endpoints.ts'
import { changedSettings, settingsOf, textsOf } from './setting-texts.ts'

const endpoint = (kept_fields: Endpoint['kept_fields']) =>
  ({ output_formats: [], kept_headers: [], kept_fields, copies: 1 }) as unknown as Endpoint

test.each<[Endpoint['kept_fields'], string, boolean]>([
  [[], '', false],
  [['key_name'], '', true],
  [['address'], 'address', false],
  [['key_name', 'address_masked'], 'address_masked', true],
])('%j is shown, and unchanged unless somebody edits it', (kept_fields, address, keeps_key_name) => {
  const texts = textsOf(endpoint(kept_fields))
  expect(texts).toMatchObject({ address, keeps_key_name })
  const before = settingsOf(texts)
  expect(before.kept_fields.toSorted()).toEqual(kept_fields.toSorted())
  expect(changedSettings(before, settingsOf({ ...texts }))).toEqual({})
  const masked = settingsOf({ ...texts, address: 'address_masked', keeps_key_name: true })
  expect(masked.kept_fields).toEqual(['address_masked', 'key_name'])
})
