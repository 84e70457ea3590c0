const words: Readonly<Record<string, string>> = {
  cast_failed: 'Does not fit the type',
  missing_required: 'Required and missing',
  invalid_json: 'Not valid JSON',
  expand_failed: 'Its array is no array, or too large',
  no_partition: 'One partition too many',
  too_expensive: 'Too expensive to convert',
}

/** The code of a reason in words; codes that came later stand for themselves. */
export function reasonWords(code: string): string {
  return words[code] ?? code
}
