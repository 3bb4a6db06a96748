/* The time zone of the browser. */

"use strict";

{
  const name = encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone);
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `time_zone=${name}; path=/admin/; max-age=31536000; SameSite=Lax${secure}`;
}
