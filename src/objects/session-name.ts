/**
 * The name of an assumed role's session, which the owner of the bucket finds in CloudTrail and in the bucket's access logs:
 * `inlet-<end of the account's id>-<the endpoint's id>`. STS takes 2 to 64 characters of `[\w+=,.@-]`, two whole ids don't fit.
 */
export function sessionName({ account_id, endpoint_id }: { readonly account_id: string; readonly endpoint_id?: string }): string {
  return `inlet-${account_id.slice(-12)}-${endpoint_id ?? 'control'}`
}
