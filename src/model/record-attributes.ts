/**
 * What a record carries beside its payload: the content type and the user properties of an MQTT 5 message.
 *
 * As text: JSON, or empty where there is nothing. It travels with the frame in the log, and stands at `$$.content_type` and
 * `$$.user_properties` of a view.
 */
export type RecordAttributes = {
  readonly content_type?: string
  /** A name that came several times has a list of its values. */
  readonly user_properties?: Readonly<Record<string, string | readonly string[]>>
}

/** `userProperties` in the order in which they came; names may repeat. */
export function encodeAttributes(
  contentType: string | undefined,
  userProperties: readonly (readonly [name: string, value: string])[],
): string {
  if (contentType === undefined && userProperties.length === 0) return ''
  const attributes: RecordAttributes = {
    ...(contentType === undefined ? {} : { content_type: contentType }),
    ...(userProperties.length === 0 ? {} : { user_properties: gather(userProperties) }),
  }
  return JSON.stringify(attributes)
}

function gather(pairs: readonly (readonly [name: string, value: string])[]): Record<string, string | string[]> {
  // Without a prototype any name is a name.
  const gathered: Record<string, string | string[]> = Object.create(null)
  for (const [name, value] of pairs) {
    const known = gathered[name]
    if (known === undefined) gathered[name] = value
    else if (typeof known === 'string') gathered[name] = [known, value]
    else known.push(value)
  }
  return gathered
}
