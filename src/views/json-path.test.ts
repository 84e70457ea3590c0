import { describe, expect, test } from 'vitest'
import { duckDbPath, PathError, parsePath } from './json-path.ts'

describe('paths', () => {
  test.each([
    ['$', '$'],
    ['$.a.b', '/a/b'],
    ["$['a']", '/a'],
    ['$["a b"].c', '/a b/c'],
    ['$."a b"', '/a b'],
    ["$['it\\'s']", "/it's"],
    ['$."a\\"b"', '/a"b'],
    ['$.a/b~c', '/a~1b~0c'],
    ['$.user-id', '/user-id'],
    ['$.@timestamp', '/@timestamp'],
    ['$.größe', '/größe'],
    ["$['a*']", '/a*'],
    // An index, [*] or a name of digits: a JSON pointer cannot tell them apart.
    ['$.a[0]', '$."a"[0]'],
    ['$.a[ 12 ].b', '$."a"[12]."b"'],
    ['$.a[*].b', '$."a"[*]."b"'],
    ['$.a.0', '$."a"."0"'],
    ["$['-']", '$."-"'],
    ['$["q\\"uo\\\\te"][0]', '$."q\\"uo\\\\te"[0]'],
  ])('%s', (text, expected) => {
    const path = parsePath(text)
    expect(path.from === 'record' && duckDbPath(path.steps)).toBe(expected)
  })

  test.each(['topic', 'client_id', 'ingested_at', 'protocol', 'content_type', 'address', 'key_name'])(
    '$$.%s names a field of the envelope',
    (field) => {
      expect(parsePath(`$$.${field}`)).toEqual({ from: 'envelope', field })
    },
  )

  test('$$.received_at is another name of $$.ingested_at', () => {
    expect(parsePath('$$.received_at')).toEqual({ from: 'envelope', field: 'ingested_at' })
  })

  test.each(['$$.user_properties.a', "$$.user_properties['a']", '$$.user_properties."a"'])('%s names a user property', (text) => {
    expect(parsePath(text)).toEqual({ from: 'envelope', field: 'user_property', name: 'a' })
  })

  test.each(['$$.headers.x-event', "$$.headers['X-Event']", '$$.headers."X-event"'])('%s names a header', (text) => {
    expect(parsePath(text)).toEqual({ from: 'envelope', field: 'header', name: 'x-event' })
  })

  test.each([
    ['', 'must start with $'],
    ['a.b', 'must start with $'],
    ['$a', 'expected . or ['],
    ['$.', 'expected a name'],
    ['$..a', 'expected a name'],
    ['$.a b', 'expected . or ['],
    ['$.*', 'expected a name'],
    ['$[-1]', 'expected an index'],
    ['$[#-1]', 'expected an index'],
    ['$[0:2]', 'expected an index'],
    ['$[?(@.a)]', 'expected an index'],
    ["$['a", 'expected an index'],
    ["$['a'", 'expected an index'],
    ['$."a', 'expected a name'],
    ['$.""', 'must not be empty'],
    ["$['a*'][0]", 'a name that contains *'],
    ['$[9999999999]', 'at most'],
    ['$$', 'must be one of'],
    ['$$.payload', 'must be one of $$.topic'],
    ['$$xreceived_at', 'must be one of $$.topic'],
    ['$$.received_at.x', 'must be one of $$.topic'],
    ['$$.user_properties', 'must name one property'],
    ['$$.user_properties.a.b', 'must name one property'],
    ['$$.user_properties[0]', 'must name one property'],
    ['$$.user_properties[*]', 'must name one property'],
    ['$$.user_properties.', 'expected a name'],
    ['$$.user_propertiesx', 'expected . or ['],
    ['$$.headers', 'must name one header, such as $$.headers.x-event'],
    ['$$.headers.a.b', 'must name one header'],
    ['$$.headers[0]', 'must name one header'],
    ['$."a\0"', 'without NUL'],
    ['$."\ud800"', 'well-formed'],
    [`$${'.a'.repeat(65)}`, 'at most 64 steps'],
    [`$${'['.repeat(1000)}`, 'expected an index'],
  ])('rejects %j', (text, message) => {
    expect(() => parsePath(text)).toThrow(PathError)
    expect(() => parsePath(text)).toThrow(message)
  })
})
