import { expect, test } from 'vitest'
import { splitPostgresUrl } from './postgres-urls.ts'

test.each([
  ['postgres://one/inlet', ['postgres://one/inlet']],
  [
    'postgresql://me:p%40ss@one:1,two/inlet?a=b,c',
    ['postgresql://me:p%40ss@one:1/inlet?a=b,c', 'postgresql://me:p%40ss@two/inlet?a=b,c'],
  ],
  ['postgres://[::1]:5432,[::2]:5433,c', ['postgres://[::1]:5432', 'postgres://[::2]:5433', 'postgres://c']],
  ['postgres:///inlet?host=/run/postgresql', ['postgres:///inlet?host=/run/postgresql']],
  ['postgres://a,,b/x', ['postgres://a/x', 'postgres:///x', 'postgres://b/x']],
])('%s', (url, expected) => {
  expect(splitPostgresUrl(url)).toEqual(expected)
})
