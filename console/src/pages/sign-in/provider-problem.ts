const texts: Readonly<Record<string, string>> = {
  not_invited: 'Nobody invited you yet. Ask an owner of an account for an invitation to your e-mail address.',
  account_suspended: 'The account that you are invited to is suspended. Ask the operator of this installation, then try again.',
  account_not_linked:
    'Somebody here has your e-mail address. If it is you, sign in as before and connect the provider in your profile. If not, tell the operator of this installation.',
  access_denied: 'The provider did not let you in, or you cancelled.',
  state_mismatch: 'Signing in took too long, or began in another browser. Try again.',
  invalid_code: 'The provider did not confirm the sign-in: it does not respond, or the page was opened twice. Try again.',
  unable_to_get_user_info:
    'Inlet could not verify what the provider said. Try again; if it stays, ask the operator of this installation: the log of control says why.',
  issuer_mismatch: 'Another provider answered than the one that you went to. Try again, and begin here.',
  email_not_found: 'The provider did not say your e-mail address. Ask its operator to release it to Inlet.',
}

/** Says why the provider brought nobody. Its own words are not shown: anybody can write them into a link. */
export function providerProblem(code: string): string {
  return texts[code] ?? 'Signing in with the provider failed. Try again; if it stays, ask the operator of this installation.'
}
